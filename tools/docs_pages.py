"""docs_pages: the blocks of code in a page of the documentation, and what is to become of them.

A block is run if it can be: `console` and `bash` are commands, `python` is a session (>>>) or a
program. A comment before a block says otherwise:

    <!-- not run: reason -->       for what needs more than one machine and its packages
    <!-- file: heat.py -->         the block is a file, which later commands use
    <!-- needs: kraken2, faiss --> commands, Python modules or paths (/…); skipped where they are
                                   missing
    <!-- numbers vary -->          of what it prints, numbers are not compared
    <!-- exit status: 1 -->        of its last command
    <!-- slow -->                  only with --all

After `$ cat NAME` the page shows a file, which is made of what it shows unless it is there.

Other languages (c, cpp, yaml, …) are shown, not run. A block without a language is a problem.
"""

import re

COMMANDS = {"console", "bash", "sh"}
RUNNABLE = COMMANDS | {"python"}
SHOWN = {"c", "cpp", "cmake", "dockerfile", "yaml", "toml", "json", "text", "sql"}
NOTES = "not run|file|needs|numbers vary|exit status|slow"
NOTE = re.compile(rf"^<!--\s*({NOTES})\s*(?::\s*(.*?))?\s*-->$")
FENCE = re.compile(r"^(`{3,})(\S*)\s*$")


class Block:
    """A fenced block: its language, its lines, and the comments before it."""

    def __init__(self, line, language, notes):
        self.line = line
        self.language = language
        self.notes = notes
        self.lines = []

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    @property
    def is_session(self):
        return self.language == "python" and ">>> " in self.text and "file" not in self.notes

    @property
    def needs(self):
        return [name.strip() for name in self.notes.get("needs", "").split(",") if name.strip()]

    @property
    def is_run(self):
        return "not run" not in self.notes and ("file" in self.notes or self.language in RUNNABLE)

    def problem(self):
        if "not run" in self.notes:
            return None if self.notes["not run"] else "'not run' without a reason"
        if "file" in self.notes or self.language in RUNNABLE | SHOWN:
            return None
        what = f"language '{self.language}'" if self.language else "no language"
        return (f"a block with {what} is neither run nor shown: name one (console, bash, python, "
                "text, …), or say <!-- not run: reason --> before it")


def blocks_of(text):
    blocks, notes, current, fence = [], {}, None, ""
    for number, line in enumerate(text.split("\n"), 1):
        opened = FENCE.match(line)
        if current is not None:
            if line.rstrip() == fence:
                current = None
            else:
                current.lines.append(line)
        elif opened:
            fence = opened[1]
            current = Block(number, opened[2], notes)
            blocks.append(current)
            notes = {}
        elif NOTE.match(line):
            note = NOTE.match(line)
            notes[note[1]] = note[2] or ""
        elif line.strip():
            notes = {}
    return blocks


class Command:
    """What is typed after one prompt, and the lines that are shown after it."""

    def __init__(self, line, text):
        self.line = line
        self.text = text
        self.shown = []

    @property
    def is_open(self):
        """True while the shell would ask for more: a quote, a loop, a here-document, a \\."""
        word = re.search(r"<<-?\s*'?(\w+)'?", self.text)
        if word and not re.search(rf"^{word[1]}$", self.text, re.MULTILINE):
            return True
        bare = re.sub(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"", "", self.text, flags=re.DOTALL)
        if self.text.endswith("\\") or "'" in bare or '"' in bare:
            return True
        opened = len(re.findall(r"(?:^|;|\s)do\b", bare)) + bare.count("{ ")
        return opened > len(re.findall(r"(?:^|;|\s)done\b", bare)) + len(re.findall(r"}", bare))


def commands_of(block):
    """With prompts, each with what it prints; without, the whole block is one command."""
    if not any(line.startswith("$ ") for line in block.lines):
        return [Command(block.line + 1, "\n".join(block.lines))]
    found = []
    for number, line in enumerate(block.lines, block.line + 1):
        if line.startswith("$ "):
            found.append(Command(number, line[2:]))
        elif found and not found[-1].shown and found[-1].is_open:
            found[-1].text += "\n" + line
        elif found:
            found[-1].shown.append(line)
    return found


NUMBER = re.compile(r"\d[\d.,:]*")
UNIT = re.compile(r"\b(?:[KMGT]iB|B)\b")


def shape_of(line):
    """A line of a report: what differs between runs (numbers, units, folders) made equal."""
    line = UNIT.sub("#", NUMBER.sub("#", re.sub(r"\S*/(?=\S)", "", line)))
    return " ".join(line.split())


def matches(shown, printed):
    """`…` stands for anything within a line."""
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in shown.split("…"))
    pattern = pattern.replace(r"\ .*", r"\ ?.*").replace(r".*\ ", r".*\ ?")
    return re.fullmatch(pattern, " ".join(printed.split())) is not None


def compare(shown, output, errors, do_numbers_vary=False):
    """None, or the first line that is not as shown. Of `output` all must be shown, or `…`; of
    `errors` (tables, progress) what is shown must be there, in any order, numbers aside."""
    output, errors = list(output), list(errors)
    is_skipping = False
    for line in shown:
        if line.strip() in ("…", "..."):
            is_skipping = True
            continue
        at = next((i for i, printed in enumerate(output) if matches(line, printed) or
                   (do_numbers_vary and shape_of(line) == shape_of(printed))), None)
        if at is not None and (at == 0 or is_skipping):
            del output[:at + 1]
            is_skipping = False
            continue
        at = next((i for i, printed in enumerate(errors)
                   if shape_of(printed) == shape_of(line) or matches(line, printed)), None)
        if at is None:
            return f"not printed: {line}"
        del errors[at]
    if output and not is_skipping:
        return f"printed, and not shown: {output[0]}"
    return None
