#!/usr/bin/env python3
"""run_docs: every command of the documentation is run, and prints what the page says.

Usage: tools/run_docs.py [--all] [--list] [--build DIR] [--python EXE] [--junit FILE] [PAGE…]

The pages are README.md and those of docs/ that users type from. Each has a folder of its own, in
which its blocks run in order (tools/docs_pages.py says which, and how pages mark them), with the
build's `outcore` and the interpreter that has the package first on PATH. Exit status 1 if a block
fails, or is neither run nor marked.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

import docs_pages

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ["docs/use-cases/*.md", "docs/guides/*.md", "README.md", "docs/*.md",
         "docs/reference/python.md"]  # those that take longest first
SECONDS_MAX = 180  # ends what hangs: no command takes more than some seconds on an idle machine
SLOW_SECONDS_MAX = 600
LINES_MAX = 30
# The environment and the folder go from command to command; files beside the page's folder.
SHELL = """cd "$(cat "$DOCS_STATE/folder")" && . "$DOCS_STATE/environment"
{}
docs_status=$?; export -p >"$DOCS_STATE/environment"; pwd >"$DOCS_STATE/folder"; exit $docs_status
"""
SESSION = """
import doctest, sys
text = open(sys.argv[1], encoding="utf-8").read()
test = doctest.DocTestParser().get_doctest(text, {}, sys.argv[2], sys.argv[2], 0)
options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
sys.exit(doctest.DocTestRunner(optionflags=options).run(test).failed > 0)
"""


class Failure(Exception):
    """A block did not do what the page says; the message has the page's line."""


class Page:
    """A page of the documentation, its blocks, and how its run went."""

    def __init__(self, name, options):
        self.name = name
        self.options = options
        self.blocks = docs_pages.blocks_of((ROOT / name).read_text(encoding="utf-8"))
        self.problems, self.skipped, self.seconds, self.ran = [], [], 0.0, 0
        self.folder = self.state = None

    def is_left_out(self, block):
        """Notes why a block that could be run is not run here, if so."""
        missing = [name for name in block.needs if not self.has(name)]
        if missing:
            self.skipped.append(f"{self.name}:{block.line}: {', '.join(missing)} not installed")
        is_late = "slow" in block.notes and not self.options.all
        if is_late:
            self.skipped.append(f"{self.name}:{block.line}: slow: --all")
        return bool(missing) or is_late

    def has(self, name):
        if name.startswith("/"):
            return os.path.exists(name)
        if shutil.which(name, path=self.environment()["PATH"]):
            return True
        look = [self.options.python, "-c", f"import {name}"]
        return subprocess.run(look, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def environment(self):
        build = self.options.build.resolve()
        places = [str(build / "bin"), os.path.dirname(self.options.python), os.environ["PATH"]]
        return {**os.environ, "PATH": ":".join(places), "LC_ALL": "C.UTF-8",
                "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(self.state),
                "DOCS_STATE": str(self.state)}

    def run(self):
        began = time.monotonic()
        for block in self.blocks:
            if block.problem():
                self.problems.append(f"{self.name}:{block.line}: {block.problem()}")
        if self.problems or not any(block.is_run for block in self.blocks):
            return
        with tempfile.TemporaryDirectory(prefix="outcore-docs-") as kept:
            self.folder, self.state = pathlib.Path(kept, "page"), pathlib.Path(kept, "state")
            self.folder.mkdir()
            self.state.mkdir()
            (self.state / "folder").write_text(str(self.folder), encoding="utf-8")
            (self.state / "environment").touch()
            (self.folder / "examples").symlink_to(ROOT / "examples")
            try:
                self.run_blocks()
            except Failure as failure:
                self.problems.append(str(failure))
        self.seconds = time.monotonic() - began

    def run_blocks(self):
        is_session_over = False
        for block in (b for b in self.blocks if b.is_run):
            if block.is_session and is_session_over:
                continue  # all sessions of a page are one, at the place of the first
            if self.is_left_out(block):
                continue
            if "file" in block.notes:
                (self.folder / block.notes["file"]).write_text(block.text, encoding="utf-8")
            elif block.is_session:
                self.run_session()
                is_session_over = True
            elif block.language == "python":
                self.run_program(block)
            else:
                self.run_commands(block)
            self.ran += 1

    def run_session(self):
        """The page with all but its sessions blanked, so that line numbers stay."""
        kept, text = {}, (ROOT / self.name).read_text(encoding="utf-8")
        for block in self.blocks:
            if block.is_session and block.is_run:
                kept.update(enumerate(block.lines, block.line))
        lines = [kept.get(i, "") for i in range(text.count("\n") + 1)]
        source = self.state / "session"
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        block = next(b for b in self.blocks if b.is_session)
        environment = {**self.environment(), "OUTCORE_BUDGET": "64M"}
        status, output, errors = self.start(
            [self.options.python, "-c", SESSION, str(source), self.name], SECONDS_MAX, environment)
        if status != 0:
            raise Failure(f"{self.name}:{block.line}: {shortened(output + errors)}")

    def run_program(self, block):
        source = self.state / "program.py"
        source.write_text(block.text, encoding="utf-8")
        status, output, errors = self.start([self.options.python, str(source)], SECONDS_MAX)
        if status != 0:
            raise Failure(f"{self.name}:{block.line}: {shortened(output + errors)}")

    def run_commands(self, block):
        seconds_max = SLOW_SECONDS_MAX if "slow" in block.notes else SECONDS_MAX
        has_prompts = any(line.startswith("$ ") for line in block.lines)
        commands = docs_pages.commands_of(block)
        for command in commands:
            wanted = int(block.notes.get("exit status", 0)) if command is commands[-1] else 0
            text = command.text if has_prompts else "set -e\n" + command.text
            made = re.fullmatch(r"cat ([\w.-]+)", command.text)
            if made and not (self.folder / made[1]).exists():
                shown = "\n".join(command.shown) + "\n"
                (self.folder / made[1]).write_text(shown, encoding="utf-8")
            status, output, errors = self.start(["bash", "-c", SHELL.format(text)], seconds_max)
            where = f"{self.name}:{command.line}: {command.text}"
            if status != wanted:
                raise Failure(f"{where}: exit status {status}\n{shortened(output + errors)}")
            if not has_prompts:
                continue
            wrong = docs_pages.compare(command.shown, output.splitlines(), errors.splitlines(),
                                       "numbers vary" in block.notes)
            if wrong:
                raise Failure(f"{where}\n{wrong}\n-- it printed:\n{shortened(output + errors)}")

    def start(self, command, seconds_max, environment=None):
        process = subprocess.Popen(
            command, cwd=self.folder, env=environment or self.environment(), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            errors="replace", start_new_session=True)
        try:
            output, errors = process.communicate(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return 124, "", f"more than {seconds_max} s"
        return process.returncode, output, errors


def shortened(text):
    lines = text.rstrip().splitlines()
    return "\n".join(lines[-LINES_MAX:])


def count(pages):
    """How many blocks are run, not run with a reason, shown, and neither; one line a page."""
    kinds = ("run", "not run, with a reason", "shown", "undecided")
    total = dict.fromkeys(kinds, 0)
    for page in [*pages, None]:
        counts = dict.fromkeys(kinds, 0)
        for block in page.blocks if page else ():
            kind = (3 if block.problem() else 0 if block.is_run else
                    1 if "not run" in block.notes else 2)
            counts[kinds[kind]] += 1
            total[kinds[kind]] += 1
        told = ", ".join(f"{n:3} {kind}" for kind, n in (counts if page else total).items())
        print(f"{page.name if page else 'together':36}{told}")


def write_junit(path, pages):
    root = xml.Element("testsuite", name="docs", tests=str(len(pages)))
    for page in pages:
        case = xml.SubElement(root, "testcase", name=page.name, time=f"{page.seconds:.3f}",
                              status="fail" if page.problems else "run")
        if page.problems:
            xml.SubElement(case, "failure", message="")
            xml.SubElement(case, "system-out").text = "\n".join(page.problems)
    path.parent.mkdir(parents=True, exist_ok=True)
    xml.ElementTree(root).write(path, encoding="unicode")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    parser.add_argument("--all", action="store_true", help="the slow ones, too")
    parser.add_argument("--list", action="store_true", help="counts the blocks, runs none")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--python", help="an interpreter that has the package")
    parser.add_argument("--junit", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    options.python = options.python or str(options.build.resolve() / "python/venv/bin/python")
    return options


def main(arguments):
    options = parse(arguments)
    names = options.pages or [str(path.relative_to(ROOT)) for pattern in PAGES
                              for path in sorted(ROOT.glob(pattern))]
    pages = [Page(name, options) for name in names]
    if options.list:
        count(pages)
        return 0
    for needed, remedy in ((options.build / "bin/outcore", "make build"),
                           (pathlib.Path(options.python), "tools/test_python.sh --install")):
        if not needed.exists():
            print(f"run_docs: {needed} is not there: {remedy}", file=sys.stderr)
            return 2
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for page, _ in zip(pages, pool.map(Page.run, pages)):
            for line in page.skipped:
                print(f"skipped: {line}")
            verdict = "FAILED" if page.problems else "passed"
            print(f"{verdict} {page.seconds:5.1f} s  {page.ran:3} blocks  {page.name}", flush=True)
            for problem in page.problems:
                print("  " + problem.replace("\n", "\n    "))
    if options.junit:
        write_junit(options.junit, pages)
    failed = sum(bool(page.problems) for page in pages)
    print(f"run_docs: {len(pages)} pages, {sum(p.ran for p in pages)} blocks, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
