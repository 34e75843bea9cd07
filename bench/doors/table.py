#!/usr/bin/env python3
"""table: what unmodified programs and NumPy take in Outcore, beside the kernel's mmap.

tools/bench_doors.sh (`make bench-doors`) makes the device and names the paths.
"""

import json
import os
import pathlib
import shutil
import signal
import statistics
import sys

import row as rows_of_table
from page import WANTED
from place import Place
from process import time_start
from rows import PROGRAMS_MEAN_MIN, ROWS, ROWS_TO_NAME

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import table_options  # noqa: E402

START = "start"
START_TITLE = "outcore run -- true, beside true"
START_MS_MAX = 5.0
NAMES = [START, *(row.name for row in ROWS)]
ALL_NAMES = [*NAMES, *(row.name for row in ROWS_TO_NAME)]


def parse(arguments):
    return table_options.parse(arguments, "bench-doors", (__doc__ or "").splitlines()[0],
                               "a quarter of the data, each run once", ALL_NAMES,
                               ("folder", "outcore", "python", "programs-python", "mmap-random",
                                "json-file"), add_options)


def add_options(parser):
    parser.add_argument("--papers", action="store_true",
                        help="the rows of docs/papers/programs.md, --quick; draws it anew")


def place_of(options):
    if options.folder is None:
        raise SystemExit("bench-doors: no device: start it by make bench-doors")
    if options.papers:
        options.quick = True
    folder = pathlib.Path(options.folder) / ("quick" if options.quick else "full")
    folder.mkdir(exist_ok=True)
    return Place(folder, options.outcore, options.python, options.programs_python,
                 options.mmap_random, options.quick)


# -- the start of a program --


def measure_start(place, see):
    """Many starts in turns, without a limit on memory."""
    plain, under = [shutil.which("true")], [place.outcore, "run", "--", "true"]
    seconds = {"mmap": [], "outcore": []}
    for _ in range(30 if place.is_quick else 150):
        seconds["mmap"].append(time_start(plain))
        seconds["outcore"].append(time_start(under))
    medians = {memory: statistics.median(found) for memory, found in seconds.items()}
    for memory, found in seconds.items():
        see({"row": START, "workload": START, "memory": memory, "seconds": medians[memory],
             "rate": 1 / medians[memory], "unit": "starts/s", "p50_us": medians[memory] * 1e6,
             "p99_us": statistics.quantiles(found, n=100)[98] * 1e6, "runs": len(found),
             "data_bytes": 0, "budget_bytes": 0, "threads": 1, "processes": 1, "page_bytes": 4096,
             "store": "", "device": "", "peak_bytes": 0, "fills": 0, "read_bytes": 0,
             "written_bytes": 0, "limited": False, "stopped": False, "checked": True})
    more_ms = (medians["outcore"] - medians["mmap"]) * 1000
    return rows_of_table.Verdict(
        "outcore run -- true", f"true {medians['mmap'] * 1000:.1f} ms",
        f"{medians['outcore'] * 1000:.1f} ms", None, f"<= {START_MS_MAX:.0f} ms more",
        f"{more_ms:.1f} ms more: {'met' if more_ms <= START_MS_MAX else 'NOT MET'}", "-", "-")


# -- the table --


def show(verdicts):
    head = ("work", "rivals, s (spread)", "Outcore, s", "ratio", "asked", "peak, MiB",
            "rival's RSS", "verdict")
    lines = [head] + [(v.title, v.rivals, v.seconds, "" if v.ratio is None else f"{v.ratio:.2f}",
                       v.asked, v.peak, v.rss, v.verdict) for v in verdicts]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head) - 1)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths)]
        print("  ".join([*cells, line[-1]]).rstrip())


def show_peak(lines):
    limited = [line for line in lines if line["limited"] and line["memory"].startswith("outcore")]
    if not limited:
        return True
    killed = [line for line in limited if line["killed"]]
    fullest = max(limited, key=lambda line: line["peak_bytes"] / line["limit_bytes"])
    share = fullest["peak_bytes"] / fullest["limit_bytes"]
    print(f"peak memory: {len(limited)} runs in Outcore, {len(killed)} killed "
          f"({'NOT MET' if killed else 'met'}: never); the fullest, {fullest['row']}, took "
          f"{share:.0%} of its limit (budget + the program's own + page tables and metadata)")
    return not killed


def show_mean(ratios):
    """Of unmodified programs: the geometric mean of their ratios."""
    if len(ratios) < 2:
        return True
    mean = statistics.geometric_mean(ratios)
    is_met = mean >= PROGRAMS_MEAN_MIN
    print(f"programs: {len(ratios)}, geometric mean {mean:.2f} x the better mmap, the least "
          f"{min(ratios):.2f} ({'met' if is_met else 'NOT MET'}: {PROGRAMS_MEAN_MIN:.2f})")
    return is_met


def describe(line):
    words = [f"  {line['row']}, {line['memory']}: {line['seconds']:.3f} s"]
    if line["limited"]:
        words.append(f"peak {line['peak_bytes'] >> 20} of {line['limit_bytes'] >> 20} MiB")
        words.append(f"{line['fills']} fills, {line['device_read_bytes'] >> 20} MiB read")
    if line["stopped"]:
        words.append(line["stopped_because"])
    return ", ".join(words)


def main(arguments):
    options = parse(arguments)
    names = options.rows or (WANTED if options.papers else NAMES)
    if options.list:
        titles = {START: START_TITLE} | {row.name: row.title for row in [*ROWS, *ROWS_TO_NAME]}
        listed = options.rows or (WANTED if options.papers else ALL_NAMES)
        print("\n".join(f"{name:<24}{titles[name]}" for name in ALL_NAMES if name in listed))
        return 0
    # So that the run in progress is ended, and its memory cgroup removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    place, lines, verdicts, programs = place_of(options), [], [], []
    with open(options.json_file or os.devnull, "a", encoding="utf-8") as json_file:
        def see(line):
            print(describe(line), file=sys.stderr, flush=True)

        def keep(found):
            """Those of a row that is whole, and right."""
            lines.extend(found)
            for line in found:
                json_file.write(json.dumps({**line, "is_quick": place.is_quick},
                                           sort_keys=True) + "\n")
            json_file.flush()

        if START in names:
            found = []
            verdicts.append(measure_start(place, lambda line: (see(line), found.append(line))))
            keep(found)
        for row in [*ROWS, *ROWS_TO_NAME]:
            if row.name in names:
                found = rows_of_table.measure(row, place, options.repeats, see)
                keep(found)
                judged = rows_of_table.judge(row, found)
                verdicts += judged
                programs += [judged[0].ratio] if row.is_program and not options.papers else []
    show(verdicts)
    is_met = show_peak(lines)
    is_met = show_mean(programs) and is_met
    return 0 if is_met and not any("NOT MET" in v.verdict for v in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
