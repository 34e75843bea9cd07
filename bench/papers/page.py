#!/usr/bin/env python3
"""page RUNS FOLDER : writes a page for each paper whose experiments were measured, with a figure of
each, from the lines of JSON of `make bench-papers`. Needs gnuplot."""

import json
import os
import pathlib
import platform
import subprocess
import sys
from collections import Counter

from experiments import EXPERIMENTS
from verdict import judge

PLOT = """set terminal pngcairo size 760,340 noenhanced font 'sans,10'
set title "{title}"
set ylabel '{unit}'
set xlabel "{axis}"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.85 border -1
set boxwidth 0.9
set yrange [0:*]
set grid ytics lc '#dddddd'
set key outside right top Left reverse
set border 3
set tics nomirror
$runs << EOD
{rows}
EOD
plot {plots}
"""
COLOURS = {"outcore": "#1f6fb4", "mmap": "#d98d2b", "mmap-random": "#7a9e3d", "direct": "#888888"}


def draw(path, experiment, lines):
    memories = list(lines[0].rates)
    rows = ["point " + " ".join(memories)]
    rows += [f'"{line.point}" ' + " ".join(f"{line.rates.get(m, 0):.6g}" for m in memories)
             for line in lines]
    plots = ", ".join(f"$runs using {i}:xtic(1) title columnheader lc rgb '{COLOURS[m]}'"
                      for i, m in enumerate(memories, 2))
    script = PLOT.format(title=experiment.title, unit=lines[0].unit, axis=experiment.axis,
                         rows="\n".join(rows), plots=plots)
    drawn = subprocess.run(["gnuplot", "-d"], input=script.encode(), capture_output=True,
                           check=False)
    if drawn.returncode != 0 or not drawn.stdout.startswith(b"\x89PNG"):
        said = drawn.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        raise SystemExit(f"bench-papers: gnuplot cannot draw {path}: {said[-1]}")
    path.write_bytes(drawn.stdout)


def number(rate):
    if rate == 0:
        return "stopped"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.3g} {unit}"
    return f"{rate:.3g}"


def table_of(experiment, lines):
    memories = list(lines[0].rates)
    yield f"| {experiment.axis} | " + " | ".join(memories) + " | over mmap | ratio | |"
    yield "| --- |" + " ---: |" * len(memories) + " ---: | ---: | --- |"
    for line in lines:
        asked = ""
        if line.is_asked:
            asked = f"{experiment.asked:g} asked: {'met' if line.is_met else '**not met**'}"
        ratio = f"{line.ratio:.2f} x {line.rival}" if line.ratio else "all others stopped"
        plain = line.rates.get("mmap", 0)
        over_plain = f"{line.rates['outcore'] / plain:.2f}" if plain else ""
        yield (f"| {line.point} | " + " | ".join(number(line.rates[m]) for m in memories)
               + f" | {over_plain} | {ratio} | {asked} |")


def section_of(experiment, lines, picture):
    yield f"## {experiment.title}"
    yield ""
    yield f"Paper, {experiment.place}: {experiment.claim}. {experiment.words}"
    yield ""
    yield f"![{experiment.title}: {', '.join(lines[0].rates)}]({picture})"
    yield ""
    yield f"{lines[0].unit}, `outcore bench {experiment.workload} {experiment.options}`:"
    yield ""
    yield from table_of(experiment, lines)
    yield ""


def device_of(run):
    device = run["device"]
    if not device.startswith("zram"):
        return device
    return (f"{device}, a disk in memory whose reads take some microseconds: what a fault costs "
            "counts there as it does on no other device")


def times_of(runs):
    """How often each point was measured, at least."""
    counts = Counter((run["row"], run["point"], run["memory"]) for run in runs)
    least = min(counts.values())
    return "each run once" if least == 1 else f"the median of {least} runs"


def page_of(paper, measured, folder):
    runs = [run for _, lines in measured for run in lines]
    name = paper.lower()
    yield f"# {paper}: its experiments, here"
    yield ""
    yield ("Drawn by `make bench-papers`: each run in a process and a memory cgroup of its own, "
           "with the same memory for all, default settings, and a verified answer; "
           f"{os.cpu_count()} processors, Linux {platform.release().split('-')[0]}, "
           f"{device_of(runs[0])}; {times_of(runs)}. \"ratio\" is Outcore's rate over that of the "
           "best rival (or of the one the paper names), \"over mmap\" over mmap without advice, "
           "which is the papers' rival; a run that did not end in 40 s is \"stopped\".")
    yield ""
    for experiment, found in measured:
        lines = judge(experiment, found)
        picture = f"{name}-{experiment.name}.png"
        draw(folder / picture, experiment, lines)
        yield from section_of(experiment, lines, picture)


def main(arguments):
    if len(arguments) != 2:
        raise SystemExit("usage: page RUNS FOLDER")
    with open(arguments[0], encoding="utf-8") as lines:
        runs = [json.loads(line) for line in lines]
    folder = pathlib.Path(arguments[1])
    folder.mkdir(parents=True, exist_ok=True)
    for paper in dict.fromkeys(e.paper for e in EXPERIMENTS):
        mine = [e for e in EXPERIMENTS if e.paper == paper]
        measured = [(e, [r for r in runs if r["row"] == e.name]) for e in mine]
        measured = [(e, found) for e, found in measured
                    if any(r["memory"] == "outcore" for r in found)]
        if len(measured) < len(mine):
            print(f"bench-papers: the page of {paper} stays: not all of its rows were measured",
                  file=sys.stderr)
            continue
        page = folder / f"{paper.lower()}.md"
        page.write_text("\n".join(page_of(paper, measured, folder)).rstrip() + "\n",
                        encoding="utf-8")
        print(page)


if __name__ == "__main__":
    main(sys.argv[1:])
