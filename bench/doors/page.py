#!/usr/bin/env python3
"""page RUNS FOLDER : writes FOLDER/programs.md, databases and today's programs beside the kernel's
mmap, from the lines of JSON of `make bench-doors`, and from those that FOLDER/programs.json has of
rows that were not measured now. Needs gnuplot."""

import json
import os
import pathlib
import sys
from dataclasses import dataclass

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import gnuplot  # noqa: E402
import kept_runs  # noqa: E402
import page_tables  # noqa: E402
from bench_command import Failed  # noqa: E402
from row import MIB, has_finished, median_seconds, runs_of  # noqa: E402
from rows import ROWS, ROWS_TO_NAME, YCSB_DATABASES  # noqa: E402

NAME = "programs"
MEMORIES = ("outcore", "mmap", "mmap-random")
BY_NAME = {row.name: row for row in [*ROWS, *ROWS_TO_NAME]}
# What verdicts and the page need of a run.
_KEPT = {"row", "memory", "seconds", "rate", "unit", "stopped", "stopped_because", "data_bytes",
         "budget_bytes", "peak_bytes", "limit_bytes", "rss_bytes", "device"}
HEAD = (
    "# Today's programs, and databases: their experiments, here\n\n"
    "Drawn by `make bench-doors OPTIONS=--papers`: unmodified programs under `outcore run`, beside "
    "the kernel's mmap without advice and with MADV_RANDOM, each run in a process and a memory "
    "cgroup of its own, with the same memory for all (the budget, and what the program itself "
    "needs), cold, and a verified answer; {machine}. Figures are rates; \"ratio\" is Outcore's "
    "over the better of the kernel's, \"over mmap\" over mmap without advice. \"data\" are MiB of "
    "data and of budget. Four times as much: the same rows by name (`--rows`), without "
    "`--quick`, which `--papers` has by itself.\n")


@dataclass(frozen=True)
class Group:
    name: str  # of the picture
    title: str
    rows: tuple[str, ...]
    words: str


def _ycsb(database):
    return tuple(name for name in BY_NAME if name.startswith(f"ycsb-{database}-"))


GROUPS = (
    Group("ycsb-lmdb", "YCSB on LMDB", _ycsb("lmdb"),
          "UMap's paper, figure 3c: 1.3 times mmap with 4 executors of N-Store, 1.9 times with 64; "
          "its database is a prototype that maps its records. LMDB maps its file, too; here a "
          "thread of an unmodified one does the mixes A to F of YCSB. Each operation is a "
          "transaction of Python's, which takes the same in each memory."),
    Group("ycsb-rocksdb", "YCSB on RocksDB", _ycsb("rocksdb"),
          "The same of RocksDB, with its tables mapped and not compressed. What it writes goes to "
          "memory and to a log first, so that only reads are of mapped memory."),
    Group("llama", "Experts of a language model", tuple(n for n in BY_NAME if "llama" in n),
          "An unmodified llama.cpp reads random weights of a mixture of experts, three times the "
          "budget, in order of their layers; each token takes 4 of 32 experts a layer. The router "
          "prefers none, or (\"zipf\") some. Asked are 2.0 for a prompt and 1.0 for what follows."),
    Group("vectors", "A vector index, and tensors", ("faiss", "safetensors"),
          "FAISS searches an index of four times the budget in its file; safetensors reads experts "
          "of a model, each as a whole."))
WANTED = tuple(row for group in GROUPS for row in group.rows)


def rate_of(runs, memory):
    """The median; 0: stopped."""
    if not has_finished(runs, memory):
        return 0.0
    here = runs_of(runs, memory)
    work = here[0]["rate"] * here[0]["seconds"]  # the same in each run
    return work / median_seconds(runs, memory)


def short(row):
    """What the row is called within its group."""
    for database in YCSB_DATABASES:
        if row.startswith(f"ycsb-{database}-"):
            mix, distribution = row.removeprefix(f"ycsb-{database}-").split("-")
            return f"{mix.upper()} {distribution}"
    return row.removeprefix("llama-")


def ratio_of(rates, rivals):
    """Ours over the best of these; "" where there is none to tell."""
    best = max((rates.get(memory, 0.0) for memory in rivals), default=0.0)
    return f"{rates['outcore'] / best:.2f}" if best and rates["outcore"] else ""


def asked_of(row, rates):
    """What is asked of it, and whether it is met."""
    least = BY_NAME[row].asked[0].ratio_min
    if least is None:
        return ""
    best = max(rates[memory] for memory in MEMORIES[1:])
    if rates["outcore"] and rates["outcore"] >= least * best:
        said = "met"
    elif rates["outcore"] and rates["outcore"] >= least * rates["mmap"]:
        said = "met over mmap, **not** beside mmap-random"
    else:
        said = "**not met**"
    return f"{least:g} asked: {said}"


def section_of(group, found, folder):
    """Lines of Markdown, and the picture they show."""
    picture = f"{NAME}-{group.name}.png"
    bars, table = {}, []
    for row in group.rows:
        runs = found[row]
        rates = {memory: rate_of(runs, memory) for memory in MEMORIES}
        best = max(rates["mmap"], rates["mmap-random"]) or max(rates.values()) or 1.0
        bars[short(row)] = {memory: rate / best for memory, rate in rates.items()}
        sizes = f"{runs[0]['data_bytes'] // MIB} in {runs[0]['budget_bytes'] // MIB}"
        table.append((short(row), sizes, *(page_tables.number(rate) for rate in rates.values()),
                      ratio_of(rates, ["mmap"]), ratio_of(rates, MEMORIES[1:]),
                      asked_of(row, rates)))
    gnuplot.draw_bars(folder / picture, group.title, "", "rate / the better mmap's", bars)
    head = ("", "data", *MEMORIES, "over mmap", "ratio", "")
    units = " or ".join(dict.fromkeys(found[row][0]["unit"] for row in group.rows))
    return [f"## {group.title}", "", group.words, "",
            f"![{group.title}: {', '.join(MEMORIES)}, over the better mmap]({picture})", "",
            f"{units}:", "", *page_tables.table(head, table)]


def draw(runs, folder):
    """Only of all rows: what was not measured is named, and the page stays as it is."""
    found = {row: [run for run in runs if run["row"] == row] for row in WANTED}
    missing = [row for row, lines in found.items() if not lines]
    if missing:
        print(f"bench-doors: {NAME}.md stays: not measured: {', '.join(missing)}", file=sys.stderr)
        return
    # The others of a row are run as often as is said; those of row.once are not.
    often = kept_runs.times_of([run for run in runs if run["memory"] not in
                                BY_NAME[run["row"]].once],
                               lambda run: (run["row"], run["memory"]))
    text = [HEAD.format(machine=f"{kept_runs.machine()}, {runs[0]['device']}, a loop device on the "
                        f"disk, past its page cache; {often}")]
    for group in GROUPS:
        text += section_of(group, found, folder)
    path = folder / f"{NAME}.md"
    path.write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    print(path)


def merged(path, measured):
    """Of the small size, and of rows that were measured in all memories."""
    small = [line for line in measured if line["row"] in WANTED and line["is_quick"]]
    have = {(line["row"], line["memory"]) for line in small}
    whole = [{key: line[key] for key in _KEPT if key in line} for line in small
             if all((line["row"], memory) in have for memory in MEMORIES)]
    return kept_runs.merged(path, whole, lambda line: line["row"],
                            lambda line: WANTED.index(line["row"]))


def main(arguments):
    if len(arguments) != 2:
        raise SystemExit("usage: page RUNS FOLDER")
    folder = pathlib.Path(arguments[1])
    try:
        with open(arguments[0], encoding="utf-8") as lines:
            measured = [json.loads(line) for line in lines]
        draw(merged(folder / f"{NAME}.json", measured), folder)
    except (OSError, ValueError, Failed) as why:
        raise SystemExit(f"bench-doors: {why}") from None


if __name__ == "__main__":
    main(sys.argv[1:])
