#!/usr/bin/env python3
"""page RUNS FOLDER : writes a page for each paper, with a figure of each of its experiments, from
the lines of JSON of `make bench-papers`, and from those that FOLDER/runs.json has of rows that were
not measured now. Needs gnuplot."""

import json
import os
import pathlib
import sys
from collections import Counter

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import published_runs  # noqa: E402
from bench_command import Failed  # noqa: E402
from experiment import DISK, FAR, GENOMES, RIVALS, STATIC, is_ours  # noqa: E402
from experiments import EXPERIMENTS  # noqa: E402
from larger import larger  # noqa: E402
from sections import section_of  # noqa: E402
from verdict import unmet  # noqa: E402

BESIDE_MMAP = (
    "each run in a process and a memory cgroup of its own, with the same memory for all, default "
    "settings, and a verified answer; {machine}. \"ratio\" is Outcore's rate over that of the best "
    "rival (or of the one the paper names), \"over mmap\" over mmap without advice, which is the "
    "papers' rival; a run that did not end in {limit} s is \"stopped\".")
# How the runs of a paper were made.
HOW = {
    "DLM": (
        "programs of one thread, as theirs, each run in a process and a memory cgroup of its own "
        "with the local share of its data as budget, and with a verified answer; {machine}. Far "
        "memory is one Redis server, which is reached by TCP on the same machine and works on the "
        "same processors. \"outcore\" has default settings, with pages of 4 KiB; \"outcore, "
        "64 KiB\" has pages of that size; \"plain memory\", dram, is without limit. With 100 % "
        "some frames are kept free, so that pages still leave. More page sizes are rows of "
        "`make bench-far`. A run that did not end in {limit} s is \"stopped\"."),
    "NVMalloc": (
        "each run in processes and a memory cgroup of its own, default settings but for what is "
        "said, and a verified answer; {machine}; checkpoints on a disk. The paper's figures are "
        "from the slides of its talk. \"outcore, parts\" gives each process a part of the budget, "
        "where \"outcore\" has one buffer for all; \"dram\" is without limit, with a copy of B in "
        "each process. mmap's processes share the kernel's page cache."),
    "pMAP": (
        "a grid of 128 MiB as S3D stores it (pressure, temperature, velocity, 11 species), by "
        "programs that do the same with each library (bench/rivals), on a disk in memory, cold, "
        "and with every element compared; {machine}. All processes share these processors: 8 of "
        "them wait for each other. \"over adios POSIX\" is what the paper claims; \"ratio\" is "
        "beside the best of all; of what is read by the same boxes write(2) is the floor that is "
        "wanted (1.0). On the disk, and larger: `make bench-arrays`. Not here: persistent memory, "
        "by DAX with and without MAP_SYNC, of which there is none: `pmem:PATH` and "
        "`pmem:PATH?map_sync=off` are compared on an emulated NVDIMM, by ratios only, in [decision "
        "0019](../internals/decisions/0019-persistent-memory.md#map_sync-off)."),
}


def command_of(experiment):
    if experiment.by == RIVALS:
        return f"make bench-papers OPTIONS=\"--rows {experiment.name}\""
    if experiment.by == STATIC:
        return f"bench/static/{experiment.workload} {experiment.options}"
    options = experiment.options.replace(GENOMES, "build/genomes")
    return f"outcore bench {experiment.workload} {options}"


def markdown_of(experiment, section, picture):
    yield f"## {experiment.title}"
    yield ""
    yield f"Paper, {experiment.place}: {experiment.claim}. {experiment.words}"
    yield ""
    if section.draw is not None:
        yield f"![{experiment.title}: {section.names}]({picture})"
        yield ""
    yield from table_of(experiment, section)


def table_of(experiment, section):
    yield f"{section.caption}, `{command_of(experiment)}`:"
    yield ""
    yield f"| {' | '.join(section.head)} |".replace("|  |", "| |")
    yield "| --- |" + " ---: |" * (len(section.head) - 2) + " --- |"
    for row in section.rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def device_of(runs):
    devices = list(dict.fromkeys(run["device"] for run in runs if run.get("device")))
    device = next((d for d in devices if d.startswith("zram")), devices[0] if devices else "")
    if not device.startswith("zram"):
        return ""
    return (f", {device}, a disk in memory whose reads take some microseconds: what a fault costs "
            "counts there as it does on no other device")


def times_of(runs):
    """How often each point was measured, at least, and when."""
    counts = Counter((run["row"], run["point"], run["column"], run.get("name"),
                      run.get("times", 1)) for run in runs)
    least = min(counts.values())
    often = "each run once" if least == 1 else f"the median of {least} runs"
    days = sorted({run["measured"] for run in runs if "measured" in run})
    return ", ".join((often, " to ".join(dict.fromkeys((days[0], days[-1]))))) if days else often


def page_of(paper, measured, folder):
    fast = [run for e, lines in measured for run in lines if e.on not in (DISK, FAR)]
    several = [run for e, lines in measured for run in lines if not e.repeats]
    name = paper.lower()
    machine = f"{published_runs.machine()}{device_of(fast)}; {times_of(several)}"
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
        yield from markdown_of(experiment, section, picture)


def draw_pages(runs, folder):
    for paper in dict.fromkeys(e.paper for e in EXPERIMENTS):
        mine = [e for e in EXPERIMENTS if e.paper == paper]
        measured = [(e, [r for r in runs if r["row"] == e.name]) for e in mine]
        measured = [(e, found) for e, found in measured
                    if any(r["column"] == "outcore" for r in found)]
        if len(measured) < len(mine):
            print(f"bench-papers: the page of {paper} stays: not all of its rows were measured",
                  file=sys.stderr)
            continue
        page = folder / f"{paper.lower()}.md"
        page.write_text("\n".join(page_of(paper, measured, folder)).rstrip() + "\n",
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
    lines = [LARGER.format(machine=f"{published_runs.machine()}{device}; {times_of(runs)}")]
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


PROFILES = (
    "# Where the time goes\n\n"
    "Drawn by `make bench-papers OPTIONS=--profile`: of each row of the papers' pages that is "
    "asked and not met, what the processors did while it ran once more, ours and the best "
    "rival's: samples of the whole machine, a thousand a second, told by what the functions on "
    "the stack are for (`bench/papers/processor_time.py`). {machine}. Figures are the time of "
    "a processor for a unit of work, so that columns can be compared; \"idle\" is what waited, "
    "for the device or for each other. What Outcore has the C library do, copies say, may count "
    "as the program's. Where what is asked is beside another setting of Outcore, that is the "
    "second column.\n")


def per_work(profile, kind):
    """Seconds of a processor a unit of work; None: of a run that was stopped."""
    work = profile["rate"] * profile["seconds"]
    return profile["by_kind"].get(kind, 0.0) / work if work else None


def differences(ours, other, scale, unit):
    """A sentence: for what ours takes most more than the other; "" where one was stopped."""
    kinds = {*ours["by_kind"], *other["by_kind"]} - {"idle"}
    pairs = {kind: (per_work(ours, kind), per_work(other, kind)) for kind in kinds}
    if any(None in pair for pair in pairs.values()):
        return ""
    more = {kind: (mine - its) * scale for kind, (mine, its) in pairs.items()}
    total = sum(more.values())
    if ours["rate"] >= other["rate"]:
        return f"Ours is faster than {other['column']}, by less than is asked."
    if total <= 0:
        return (f"Ours works no longer than {other['column']} does: what it takes longer it waits, "
                "or other load had the processors.")
    most = sorted((k for k in more if more[k] > 0), key=more.__getitem__, reverse=True)[:3]
    return (f"Ours works {total:.3g} {unit} more than {other['column']}: "
            + ", ".join(f"{kind} {more[kind]:.3g}" for kind in most) + ".")


def compared_with(experiment, rival):
    """The column of a profile beside ours, as table.profile() chooses it."""
    column, base = experiment.beside
    return f"{column}, {base}" if is_ours(column) and base else rival or "outcore"


def unit_for(seconds):
    """In which this is no very small number, and how many of it a second has."""
    return next((name, scale) for name, scale, least in (
        ("milliseconds", 1e3, 1e-3), ("microseconds", 1e6, 1e-6), ("nanoseconds", 1e9, 0.0))
        if seconds >= least)


def profiles_of(profiles):
    """Lines of Markdown: a table for each row and point."""
    by_name = {e.name: e for e in EXPERIMENTS}
    for name, point in dict.fromkeys((p["profile"], p["point"]) for p in profiles):
        here = [p for p in profiles if (p["profile"], p["point"]) == (name, point)]
        one = by_name[name]
        yield f"## {one.title}: {one.axis} {point}"
        yield ""
        unit, scale = unit_for(max(per_work(p, k) or 0.0 for p in here for k in p["by_kind"]))
        day = f", {here[0]['measured']}" if "measured" in here[0] else ""
        yield (f"{one.paper}, `{command_of(one)}`; asked {one.asked:g}{day}. {unit.capitalize()} "
               f"of a processor for each of the {here[0]['unit'].removesuffix('/s')}:")
        yield ""
        yield "| | " + " | ".join(p["column"] for p in here) + " |"
        yield "| --- |" + " ---: |" * len(here)
        sums = Counter()
        for p in here:
            sums.update(p["by_kind"])
        for kind, _ in sums.most_common():
            cells = (per_work(p, kind) for p in here)
            yield f"| {kind} | " + " | ".join("-" if c is None else f"{c * scale:.3g}"
                                              for c in cells) + " |"
        yield ""
        if len(here) == 2 and (told := differences(*here, scale, unit)):
            yield told
            yield ""


def draw_profiles(runs, profiles, folder):
    """Only of all rows that are not met: those that are not there would seem to be."""
    have = {r["row"] for r in runs}
    if not profiles or any(e.name not in have for e in EXPERIMENTS):
        return
    wanted = {(e.name, label): compared_with(e, rival) for e in EXPERIMENTS
              for label, rival in unmet(e, [r for r in runs if r["row"] == e.name])}
    profiles = [p for p in profiles if (p["profile"], p["point"]) in wanted]
    have = {(p["profile"], p["point"], p["column"]) for p in profiles}
    missing = sorted(place for place, other in wanted.items() if (*place, other) not in have)
    if missing:
        print("bench-papers: the page of profiles stays: not met, and without one: "
              + ", ".join(" ".join(words) for words in missing), file=sys.stderr)
        return
    head = PROFILES.format(machine=f"{published_runs.machine()}{device_of(runs)}")
    path = folder / "profiles.md"
    path.write_text("\n".join([head, *profiles_of(profiles)]).rstrip() + "\n", encoding="utf-8")
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
        draw_pages(runs, folder)
        draw_profiles(runs, profiles, folder)
    except Failed as why:
        raise SystemExit(f"bench-papers: {why}") from None


if __name__ == "__main__":
    main(sys.argv[1:])
