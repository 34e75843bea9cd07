#!/usr/bin/env python3
"""page RUNS FOLDER : writes a page for each paper, with a figure of each of its experiments, from
the lines of JSON of `make bench-papers`, and from those that FOLDER/runs.json has of rows that were
not measured now. Needs gnuplot."""

import json
import os
import pathlib
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import kept_runs  # noqa: E402
import page_tables  # noqa: E402
import published_runs  # noqa: E402
from bench_command import Failed  # noqa: E402
from experiment import DISK, FAR  # noqa: E402
from experiments import EXPERIMENTS  # noqa: E402
from larger import larger  # noqa: E402
from profiles import draw_profiles, explanation_of  # noqa: E402
from published_runs import command_of, device_of  # noqa: E402
from sections import section_of  # noqa: E402

BESIDE_MMAP = (
    "each run in a process and a memory cgroup of its own, with the same memory for all, default "
    "settings, and a verified answer; {machine}. \"ratio\" is Outcore's rate over that of the best "
    "rival (or of the one the paper names), \"over mmap\" over mmap without advice, which is the "
    "papers' rival, and \"paper\" what the paper has there, over its own. Plain memory (dram, "
    "malloc) is without limit, and no rival. A run that did not end in {limit} s is \"stopped\".")
# How the runs of a paper were made.
HOW = {
    "DLM": (
        "programs of one thread, as theirs, each run in a process and a memory cgroup of its own "
        "with the local share of its data as budget, and with a verified answer; {machine}. Far "
        "memory is one Redis server, which is reached by TCP on the same machine and works on "
        "the same processors. \"outcore\" has default settings, with pages of 4 KiB; \"outcore, "
        "64 KiB\" has pages of that size; \"plain memory\", dram, is without limit. With 100 % "
        "some frames are kept free, so that pages still leave. More page sizes are rows of `make "
        "bench-far`. \"paper\" is what the paper has there. A run that did not end in {limit} s "
        "is \"stopped\"."),
    "NVMalloc": (
        "each run in processes and a memory cgroup of its own, default settings but for what is "
        "said, and a verified answer; {machine}; checkpoints on a disk. The paper's figures, "
        "\"paper\" in the tables, are from the slides of its talk. \"outcore, parts\" gives each "
        "process a part of the budget, where \"outcore\" has one buffer for all; \"dram\" is "
        "without limit, with a copy of B in each process. mmap's processes share the kernel's "
        "page cache."),
    "pMAP": (
        "a grid of 128 MiB as S3D stores it (pressure, temperature, velocity, 11 species), by "
        "programs that do the same with each library (bench/rivals), on a disk in memory, cold, "
        "and with every element compared; {machine}. All processes share these processors: 8 of "
        "them wait for each other. \"over adios POSIX\" is what the paper claims, \"paper\" its "
        "figure; \"ratio\" is beside the best of all; of what is read by the same boxes write(2) "
        "is the floor that is wanted (1.0). On the disk, and larger: `make bench-arrays`. Not "
        "here: persistent memory, by DAX with and without MAP_SYNC, of which there is none: "
        "`pmem:PATH` and `pmem:PATH?map_sync=off` are compared on an emulated NVDIMM, by ratios "
        "only, in [decision 0019](../internals/decisions/0019-persistent-memory.md#map_sync-off)."),
}


def markdown_of(experiment, section, picture, explanation):
    yield f"## {experiment.title}"
    yield ""
    yield f"Paper, {experiment.place}: {experiment.claim}. {experiment.words}"
    yield ""
    if section.draw is not None:
        yield f"![{experiment.title}: {section.names}]({picture})"
        yield ""
    yield from table_of(experiment, section)
    if explanation:
        yield explanation
        yield ""


def table_of(experiment, section):
    yield f"{section.caption}, `{command_of(experiment)}`:"
    yield ""
    yield from page_tables.table(section.head, section.rows)


def times_of(runs):
    return kept_runs.times_of(runs, lambda run: (run["row"], run["point"], run["column"],
                                                 run.get("name"), run.get("times", 1)))


def page_of(paper, measured, profiles, folder):
    fast = [run for e, lines in measured for run in lines if e.on not in (DISK, FAR)]
    several = [run for e, lines in measured for run in lines if not e.repeats]
    name = paper.lower()
    machine = f"{kept_runs.machine()}{device_of(fast)}; {times_of(several)}"
    limits = sorted({e.limit_seconds for e, _ in measured})
    how = HOW.get(paper, BESIDE_MMAP).format(machine=machine, limit=" or ".join(map(str, limits)))
    yield f"# {paper}: its experiments, here"
    yield ""
    yield f"Drawn by `make bench-papers`: {how}"
    yield ""
    for experiment, found in measured:
        section = section_of(experiment, found)
        picture = f"{name}-{experiment.name}.png"
        if section.draw is not None:
            section.draw(folder / picture)
        mine = [p for p in profiles if p["profile"] == experiment.name]
        yield from markdown_of(experiment, section, picture,
                               explanation_of(experiment, found, mine))


def draw_pages(runs, profiles, folder):
    for paper in dict.fromkeys(e.paper for e in EXPERIMENTS):
        mine = [e for e in EXPERIMENTS if e.paper == paper]
        measured = [(e, [r for r in runs if r["row"] == e.name]) for e in mine]
        measured = [(e, found) for e, found in measured
                    if {p.label for p in e.points} <= {r["point"] for r in found
                                                       if r["column"] == "outcore"}]
        if len(measured) < len(mine):
            print(f"bench-papers: the page of {paper} stays: not all of its rows were measured",
                  file=sys.stderr)
            continue
        page = folder / f"{paper.lower()}.md"
        page.write_text("\n".join(page_of(paper, measured, profiles, folder)).rstrip() + "\n",
                        encoding="utf-8")
        print(page)


LARGER = (
    "# Larger\n\n"
    "Drawn by `make bench-papers OPTIONS=\"--times N --rows …\"`: some of the papers' experiments "
    "with more data and memory than on their pages, and as much more of what is counted (touches, "
    "reads, operations), to see what of those figures is due to their small size. {machine}. A run "
    "may last longer by the same factor before it is stopped. All else is as on [UMap's](umap"
    ".md), [DI-MMAP's](di-mmap.md), [DLM's](dlm.md) and [NVMalloc's](nvmalloc.md) pages.\n")


def draw_larger(runs, folder):
    """A table for each row that was measured with more data."""
    if not runs:
        return
    device = device_of([r for r in runs if r.get("device", "").startswith("zram")])
    lines = [LARGER.format(machine=f"{kept_runs.machine()}{device}; {times_of(runs)}")]
    for experiment in EXPERIMENTS:
        for times in sorted({r["times"] for r in runs if r["row"] == experiment.name}):
            found = [r for r in runs if (r["row"], r["times"]) == (experiment.name, times)]
            one = larger(experiment, times)
            section = section_of(one, found)
            lines += [f"## {one.title}, {times} times the data", "",
                      f"{one.paper}, {one.place}: {one.claim}.", "",
                      *table_of(one, section)]
    path = folder / "larger.md"
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(path)


def main(arguments):
    if len(arguments) != 2:
        raise SystemExit("usage: page RUNS FOLDER")
    with open(arguments[0], encoding="utf-8") as lines:
        measured = [json.loads(line) for line in lines]
    folder = pathlib.Path(arguments[1])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        found = published_runs.merged(folder / published_runs.NAME, measured)
    except Failed as why:
        raise SystemExit(f"bench-papers: {why}") from None
    small = [line for line in found if line.get("times", 1) == 1]
    runs = [line for line in small if "profile" not in line]
    profiles = [line for line in small if "profile" in line]
    try:
        draw_larger([line for line in found if "row" in line and line.get("times", 1) > 1], folder)
        draw_pages(runs, profiles, folder)
        draw_profiles(runs, profiles, folder)
    except Failed as why:
        raise SystemExit(f"bench-papers: {why}") from None


if __name__ == "__main__":
    main(sys.argv[1:])
