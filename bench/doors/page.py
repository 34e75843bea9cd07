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
from bench_command import Failed  # noqa: E402
from row import MIB, has_finished, judge, median_seconds, runs_of  # noqa: E402
from rows import ROWS, ROWS_TO_NAME, YCSB_DATABASES  # noqa: E402

NAME = "programs"
MEMORIES = ("outcore", "mmap", "mmap-random")
BY_NAME = {row.name: row for row in [*ROWS, *ROWS_TO_NAME]}
# What verdicts and the page need of a run.
_KEPT = {"row", "memory", "seconds", "rate", "unit", "stopped", "stopped_because", "data_bytes",
         "budget_bytes", "peak_bytes", "limit_bytes", "rss_bytes", "device", "device_read_bytes"}
HEAD = (
    "# Today's programs, and databases: their experiments, here\n\n"
    "Drawn by `make bench-doors OPTIONS=\"--quick --rows …\"`: unmodified programs under `outcore "
    "run`, beside the kernel's mmap without advice and with MADV_RANDOM, each run in a process and "
    "a memory cgroup of its own, with the same memory for all (the budget, and what the program "
    "itself needs), cold, and a verified answer; {machine}. Figures are rates; \"ratio\" is "
    "Outcore's over the better of the kernel's, \"over mmap\" over mmap without advice.\n")


@dataclass(frozen=True)
class Group:
    name: str  # of the picture
    title: str
    rows: tuple[str, ...]
    words: str
    paper: str = ""  # what UMap's has


def _ycsb(database):
    return tuple(name for name in BY_NAME if name.startswith(f"ycsb-{database}-"))


_PAPER = "1.3 to 1.9"
GROUPS = (
    Group("ycsb-lmdb", "YCSB on LMDB", _ycsb("lmdb"),
          "UMap's paper, figure 3c: 1.3 times mmap with 4 executors of N-Store, 1.9 times with 64; "
          "its database is a prototype that maps its records. LMDB maps its file, too; here a "
          "thread of an unmodified one does the mixes A to F of YCSB. Each operation is a "
          "transaction of Python's, which takes the same in each memory.", _PAPER),
    Group("ycsb-rocksdb", "YCSB on RocksDB", _ycsb("rocksdb"),
          "The same of RocksDB, with its tables mapped and not compressed. What it writes goes to "
          "memory and to a log first, so that only reads are of mapped memory.", _PAPER),
    Group("llama", "Experts of a language model", tuple(n for n in BY_NAME if "llama" in n),
          "An unmodified llama.cpp reads random weights of a mixture of experts, three times the "
          "budget, in order of their layers; each token takes 4 of 32 experts a layer. The router "
          "prefers none, or (\"zipf\") some. Asked are 2.0 for a prompt and 1.0 for what follows."),
    Group("vectors", "A vector index, and tensors", ("faiss", "safetensors"),
          "FAISS searches an index of four times the budget in its file; safetensors reads experts "
          "of a model, each as a whole."))


def rate_of(runs, memory):
    """The median; 0: stopped."""
    if not has_finished(runs, memory):
        return 0.0
    here = runs_of(runs, memory)
    work = here[0]["rate"] * here[0]["seconds"]  # the same in each run
    return work / median_seconds(runs, memory)


def number(value):
    if value == 0:
        return "stopped"
    return f"{value / 1e3:.3g} k" if value >= 1e3 else f"{value:.3g}"


def short(row):
    """What the row is called within its group."""
    for database in YCSB_DATABASES:
        if row.startswith(f"ycsb-{database}-"):
            mix, distribution = row.removeprefix(f"ycsb-{database}-").split("-")
            return f"{mix.upper()} {distribution}"
    return row.removeprefix("llama-")


def cells_of(group, row, rates, runs):
    """A line of the table."""
    verdict = judge(BY_NAME[row], runs)[0]
    over = rates["outcore"] / rates["mmap"] if rates.get("mmap") else 0.0
    said = verdict.verdict.replace("NOT MET", "**not met**")
    return (short(row), *(number(rates[m]) if m in rates else "-" for m in MEMORIES),
            f"{over:.2f}" if over else "", f"{verdict.ratio:.2f}",
            *((group.paper,) if group.paper else ()),
            f"{verdict.asked} asked: {said}" if verdict.asked else said)


def section_of(group, found, folder):
    """Lines of Markdown, and the picture they show."""
    picture = f"{NAME}-{group.name}.png"
    bars, table = {}, []
    for row in group.rows:
        runs = found[row]
        rates = {m: rate_of(runs, m) for m in MEMORIES if runs_of(runs, m)}
        best = max(rate for memory, rate in rates.items() if memory != "outcore") or 1.0
        bars[short(row)] = {m: rates.get(m, 0.0) / best for m in MEMORIES}
        table.append(cells_of(group, row, rates, runs))
    gnuplot.draw_bars(folder / picture, group.title, "", "rate / the better mmap's", bars)
    one = found[group.rows[0]][0]
    head = ("", *MEMORIES, "over mmap", "ratio", *(("paper",) if group.paper else ()), "")
    return [f"## {group.title}", "", group.words, "",
            f"![{group.title}: {', '.join(MEMORIES)}, over the better mmap]({picture})", "",
            f"{one['unit']}, {one['data_bytes'] // MIB} MiB in {one['budget_bytes'] // MIB}, "
            f"`make bench-doors OPTIONS=\"--quick --rows {group.rows[0]}\"`:", "",
            f"| {' | '.join(head)} |".replace("|  |", "| |"),
            "| --- |" + " ---: |" * (len(head) - 2) + " --- |",
            *(f"| {' | '.join(cells)} |" for cells in table), ""]


def draw(runs, folder):
    """Only of all rows: what was not measured is named, and the page stays as it is."""
    wanted = [row for group in GROUPS for row in group.rows]
    found = {row: [run for run in runs if run["row"] == row] for row in wanted}
    missing = [row for row, lines in found.items() if not lines]
    if missing:
        print(f"bench-doors: {NAME}.md stays: not measured: {', '.join(missing)}", file=sys.stderr)
        return
    often = kept_runs.times_of(runs, lambda run: (run["row"], run["memory"]))
    text = [HEAD.format(machine=f"{kept_runs.machine()}, {runs[0]['device']}, a loop device on the "
                        f"disk, past its page cache; {often}")]
    for group in GROUPS:
        text += section_of(group, found, folder)
    path = folder / f"{NAME}.md"
    path.write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    print(path)


def merged(path, measured):
    order = {row: i for i, row in enumerate(row for group in GROUPS for row in group.rows)}
    return kept_runs.merged(path, [{k: v for k, v in line.items() if k in _KEPT}
                                   for line in measured],
                            lambda line: line["row"], lambda line: order.get(line["row"]))


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
