#!/usr/bin/env python3
"""table: far memory beside what network, servers and swap of this machine give.

tools/bench_far.sh (`make bench-far`) builds the programs and names the paths.
"""

import json
import os
import signal
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import floors  # noqa: E402
import table_options  # noqa: E402
from bench_command import Failed  # noqa: E402
from engines import Engines  # noqa: E402
from judge import Verdict  # noqa: E402
from rows import ROWS  # noqa: E402
from runs import Context, describe, say  # noqa: E402

NAMES = [row.name for row in ROWS]


def parse(arguments):
    return table_options.parse(arguments, "bench-far", (__doc__ or "").splitlines()[0],
                               "an eighth of the data, runs once", NAMES,
                               ("programs", "folder", "figures", "json-file"))


def show(verdicts):
    head = ("row", "measured", "asked", "verdict")
    lines = [head] + [(v.title, v.measured, v.asked, v.verdict) for v in verdicts]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head) - 1)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths)]
        print("  ".join([*cells, line[-1]]).rstrip())


def measure(context, names, figures):
    verdicts = []
    for row in ROWS:
        if row.name not in names:
            continue
        say(f"-- {row.name}: {row.title}")
        try:
            verdicts += row.measure(context, figures)
        except Failed as why:
            verdicts.append(Verdict(row.title, "-", "-", f"NOT MET: it failed: {why}"))
    return verdicts


def show_floors(context):
    for name, said in context.floors.items():
        told = f"{said / 1000:.1f} k GETRANGE of 4 KiB a second" if isinstance(said, float) else \
            f"4 KiB p50 {said['p50_us']:.1f} us; 64 KiB, {floors.DEPTH} deep, " \
            f"{said['mib_s']:.0f} MiB/s"
        print(f"floor, {name}: {told}")


def main(arguments):
    options = parse(arguments)
    names = options.rows or NAMES
    if options.list:
        print("\n".join(f"{row.name:<14}{row.title}" for row in ROWS if row.name in names))
        return 0
    if options.programs is None:
        raise SystemExit("bench-far: no programs: start it by make bench-far")
    # So that the engines, and what runs, are ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with open(options.json_file or os.devnull, "a", encoding="utf-8") as json_file, \
            Engines() as engines:
        def see(line):
            json_file.write(json.dumps(line, sort_keys=True) + "\n")
            json_file.flush()
            say(describe(line))

        context = Context(options.programs, options.folder, engines, options.quick,
                          options.repeats, see)
        verdicts = measure(context, names, options.figures)
    show_floors(context)
    show(verdicts)
    return 1 if any(v.verdict.startswith("NOT MET") for v in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
