#!/usr/bin/env python3
"""system_calls.py [--write]: is every system call of x86-64 Linux in the table of the doors?

The table is run/preload/system_calls.inc; the kernel's list is that of its headers. What the table
calls taken over must be answered by syscall(), and the page docs/reference/system-calls.md must say
what the table says; --write writes it.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "run/preload/system_calls.inc"
SHAPES = ROOT / "run/preload/call_shapes.inc"
ANSWERS = ROOT / "run/preload/calls_syscall.cc"
PAGE = ROOT / "docs/reference/system-calls.md"
HEADERS = [pathlib.Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
           pathlib.Path("/usr/include/asm/unistd_64.h")]
NUMBERS_MAX = 512  # of syscall()'s marks

INTRODUCTION = """# System calls under `outcore run`

Every system call of x86-64 Linux that the kernel's headers name, and what becomes of it where a
file or memory is taken by [`outcore run`](../guides/run.md). Made from
`run/preload/system_calls.inc` by `tools/system_calls.py --write`. What a program does by
instructions of its own, past the C library, is seen in none of these, but for what is refused under
`--alloc`.
"""

FATES = {
    "kTakenOver": ("Taken over",
                   "By the C library's function of that name, and by its `syscall()`."),
    "kRefused": ("May be refused", "As a kernel without the call does."),
    "kNeedsSetUp": ("Needs a call that may be refused",
                    "Without it there is nothing to use them on."),
    "kFaults": ("Arguments in memory of ours",
                "With messages they work wherever their arguments lie. In-thread they do where the "
                "memory lies in the window; else an argument that lies in memory of ours, in a "
                "page that is absent at that moment, is EFAULT."),
    "kNothing": ("Of no concern", "They reach no memory and no bytes of files that are ours."),
}


def read_table(text):
    """[(name, number, fate, remark)]"""
    rows = []
    for entry in re.findall(r"^X\((.*?)\)$", text, re.M | re.S):
        name, number, fate, remark = entry.split(",", 3)
        words = "".join(re.findall(r'"([^"]*)"', remark))
        rows.append((name.strip(), int(number), fate.strip(), words))
    return rows


# Calls with pointers that the window's filter must not look at, or that need none: see
# call_shapes.inc.
WITHOUT_SHAPE = {
    "clone", "clone3", "execve", "execveat", "rseq", "set_robust_list", "set_tid_address",
    "sigaltstack"}


def shape_complaints(rows, shapes):
    shaped = set(re.findall(r"^S\((\w+),", shapes, re.M))
    return [f"{name} has no shape in {SHAPES.name}"
            for name, _, fate, _ in rows
            if fate == "kFaults" and name not in shaped | WITHOUT_SHAPE]


def read_header(text):
    found = re.findall(r"#define __NR_(\w+) (\d+)", text)
    return {name: int(number) for name, number in found}


def complaints(rows, kernel, answers, page):
    """What is wrong, a line each."""
    numbers = {name: number for name, number, _, _ in rows}
    found = [f"{name} ({number}) of the kernel's list is not in the table"
             for name, number in kernel.items() if numbers.get(name) != number]
    found += [f"{name} ({number}) is in the table twice, or its number is"
              for name, number, _, _ in rows
              if len([r for r in rows if r[0] == name or r[1] == number]) != 1]
    found += [f"{name}: {fate} is no fate" for name, _, fate, _ in rows if fate not in FATES]
    found += [f"{name} ({number}) is past the marks of syscall()" for name, number, _, _ in rows
              if number >= NUMBERS_MAX]
    answered = {name.removeprefix("SYS_") for name in re.findall(r"case (SYS_\w+)", answers)}
    if "case kMseal" in answers:
        answered.add("mseal")
    seen = {name for name, _, fate, _ in rows if fate in ("kTakenOver", "kRefused")}
    found += [f"{name} is taken over by the table, not by syscall()" for name in seen - answered]
    found += [f"{name} is taken over by syscall(), not by the table" for name in answered - seen]
    if page != to_page(rows):
        found.append(f"{PAGE.name} is not what the table says: tools/system_calls.py --write")
    return sorted(set(found))


def to_page(rows):
    lines = INTRODUCTION.splitlines()
    lines.append("")
    for fate, (title, words) in FATES.items():
        lines += [f"## {title}", "", words, ""]
        all_of = [row for row in rows if row[2] == fate]
        told = [row for row in all_of if row[3]]
        if told:
            lines += ["| call | |", "| --- | --- |"]
            lines += [f"| `{name}` | {remark} |" for name, _, _, remark in told]
            lines.append("")
        rest = [f"`{name}`" for name, _, _, remark in all_of if not remark]
        line = ""
        for word in rest:
            if len(line) + len(word) > 110:
                lines.append(line.rstrip())
                line = ""
            line += word + " "
        if rest:
            lines += [line.rstrip(), ""]
    return "\n".join(lines).rstrip() + "\n"


def main(arguments):
    rows = read_table(TABLE.read_text())
    if "--write" in arguments:
        PAGE.write_text(to_page(rows))
    header = next((path for path in HEADERS if path.exists()), None)
    if header is None:
        print("no asm/unistd_64.h: install linux-libc-dev", file=sys.stderr)
        return 1
    page = PAGE.read_text() if PAGE.exists() else ""
    found = complaints(rows, read_header(header.read_text()), ANSWERS.read_text(), page)
    found += shape_complaints(rows, SHAPES.read_text())
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
