#!/usr/bin/env python3
"""table: named arrays beside the libraries of parallel I/O and plain files.

tools/bench_arrays.sh (`make bench-arrays`) builds the programs and names the paths.
"""

import json
import os
import pathlib
import re
import signal
import sys

import code_size
import judge
import machine
import programs
from programs import EXAMPLES, PROGRAMS, Failed

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import table_options  # noqa: E402

ROWS = {
    "write": "write durably, by boxes (1 x 2 x 2)",
    "same": "read by the same boxes, cold, copying",
    "planes": "read in another decomposition (4 x 1 x 1), cold, copying",
    "view": "look at it as a view by planes, cold",
    "code": "lines and tokens of the paper's example program",
}
FULL_SIZE, QUICK_SIZE = "1G", "128M"
NEEDED = ("outcore", "mmap_floor", "write_floor")


def refuse(why):
    """Wrong words."""
    say(f"bench-arrays: {why}")
    sys.exit(2)


def parse(arguments):
    def more(parser):
        parser.add_argument("--json", action="store_true", help="lines of JSON, no table")
        parser.add_argument("--size", help=f"of all variables together ({FULL_SIZE}; "
                            f"--quick: {QUICK_SIZE})")
        parser.add_argument("--processes", type=int, nargs="+", metavar="N",
                            help="counts of processes: 1, 2, 4 or 8 (4 2; --quick: 4)")

    options = table_options.parse(arguments, "bench-arrays", (__doc__ or "").splitlines()[0],
                                  "an eighth of the data, four processes, runs once", list(ROWS),
                                  ("programs", "folder", "json-file"), more)
    options.size = options.size or (QUICK_SIZE if options.quick else FULL_SIZE)
    options.processes = options.processes or ([4] if options.quick else [4, 2])
    if not re.fullmatch(r"[1-9][0-9]{0,15}[KMG]?", options.size):
        refuse(f"--size {options.size}: bytes, or with K, M or G")
    if not set(options.processes) <= {1, 2, 4, 8}:
        refuse("--processes is 1, 2, 4 or 8")
    return options


def say(text):
    print(text, file=sys.stderr, flush=True)


class Table:
    """All that is measured, and what failed."""

    def __init__(self, options, see):
        self.options = options
        self.see = see
        self.rows = options.rows or list(ROWS)
        # What was written is read again, and a view is compared with copying the same planes.
        wanted = {"write", "same", *self.rows} | ({"planes"} if "view" in self.rows else set())
        self.phases = [row for row in ("write", "same", "planes", "view") if row in wanted]
        self.missing, self.failed, self.versions = {}, {}, {}
        self.measured = {}  # of a count of processes and a phase: {program: Runs}
        self.verdicts = []

    def find(self):
        """Which programs are there; the others are told of."""
        examples = [f"example_{name}" for name in EXAMPLES] if "code" in self.rows else []
        for name in [p.binary for p in PROGRAMS] + examples:
            if not os.access(f"{self.options.programs}/{name}", os.X_OK):
                self.missing[name] = f"cannot be built: {self.options.programs}/{name}.log"
        for name in NEEDED:
            if name in self.missing:
                raise SystemExit(f"bench-arrays: {name} {self.missing[name]}")

    def measure(self):
        there = [p for p in PROGRAMS if p.binary not in self.missing]
        for processes in self.options.processes:
            for turn in range(self.options.repeats):
                say(f"-- {processes} processes, turn {turn + 1} of {self.options.repeats}")
                begin = turn % len(there)  # nobody is always first, or always behind the same one
                for program in there[begin:] + there[:begin]:
                    self.run(program, processes)

    def run(self, program, processes):
        if program.name in self.failed:
            return
        options = self.options
        try:
            lines = programs.measure(program, options.programs, options.folder, processes,
                                     options.size, self.phases)
        except Failed as why:
            self.failed[program.name] = f"{processes} processes: {why}"
            say(f"  {program.name}: it failed: {why}")
            return
        for line in lines:
            self.see(line)
            self.versions[program.name] = line["version"]
            phase = self.measured.setdefault((processes, line["phase"]), {})
            runs = phase.setdefault(program.name, judge.Runs(program.kind, [], []))
            runs.seconds.append(line["seconds"])
            if "first_seconds" in line:
                runs.first_seconds.append(line["first_seconds"])
        told = ", ".join(f"{line['phase']} {line['seconds']:.3f} s" for line in lines)
        say(f"  {program.name}: {told}")

    def judge(self):
        for processes in self.options.processes:
            phases = {phase: runs for (count, phase), runs in self.measured.items()
                      if count == processes}
            for phase in phases.values():  # one that failed later is in none of the rows
                for name in set(phase) & set(self.failed):
                    del phase[name]
            for row in ("write", "same", "planes", "view"):
                if row in self.rows:
                    for verdict in getattr(judge, row)(phases):
                        verdict.title += f", {processes} processes"
                        self.verdicts.append(verdict)

    def code(self):
        """Every example is run, too: programs that do the same are compared."""
        sizes = {}
        for name in EXAMPLES:
            text = (HERE / f"example_{name}.cc").read_text(encoding="utf-8")
            sizes[name] = code_size.code_size(text)
            if f"example_{name}" in self.missing:
                continue
            try:
                programs.run_example(name, self.options.programs, self.options.folder, 4)
            except Failed as why:
                self.failed[f"example_{name}"] = str(why)
        self.verdicts += judge.code(sizes)
        return sizes


def show_phases(table):
    for (processes, phase), measured in table.measured.items():
        if phase not in table.rows:
            continue
        print(f"\n{ROWS[phase]}, {processes} processes")
        lines = [("", "seconds", "spread", "MiB/s", "x outcore's", "first element")]
        ours = measured[judge.OURS].median() if judge.OURS in measured else None
        for name, runs in sorted(measured.items(), key=lambda item: item[1].median()):
            seconds = runs.median()
            first = f"{runs.first() * 1000:.2f} ms" if runs.first_seconds else ""
            lines.append((f"{name} {table.versions[name]}".strip(), f"{seconds:.3f}",
                          f"{runs.spread():.0%}", f"{table.data_bytes / 2**20 / seconds:.0f}",
                          f"{seconds / ours:.2f}" if ours else "-", first))
        show(lines)


def show(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  " + "  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip())


def show_all(table, sizes):
    print(f"{machine.describe(table.options.folder)}; S3D-like, {table.options.size}, "
          f"medians of {table.options.repeats}")
    show_phases(table)
    if sizes:
        print(f"\n{ROWS['code']} (the paper: pMAP 16 and 132, HDF5 42 and 253, ADIOS 24 and 164)")
        show([("", "lines", "tokens")] +
             [(name, str(lines), str(tokens)) for name, (lines, tokens) in sizes.items()])
    for name, why in {**table.missing, **table.failed}.items():
        print(f"\nnot measured: {name}: {why}")
    print()
    show([("row", "measured", "asked", "verdict")] +
         [(v.title, v.measured, v.asked, v.verdict) for v in table.verdicts])


def main(arguments):
    options = parse(arguments)
    if options.list:
        print("\n".join(f"{name:<10}{ROWS[name]}" for name in options.rows or ROWS))
        return 0
    if options.programs is None:
        raise SystemExit("bench-arrays: no programs: start it by make bench-arrays")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with open(options.json_file or os.devnull, "a", encoding="utf-8") as json_file:
        def see(line):
            table.data_bytes = line.get("data_bytes", table.data_bytes)
            text = json.dumps(line, sort_keys=True)
            json_file.write(text + "\n")
            json_file.flush()
            if options.json:
                print(text, flush=True)

        table = Table(options, see)
        table.data_bytes = 0
        table.find()
        if set(table.rows) != {"code"}:
            table.measure()
            table.judge()
        sizes = table.code() if "code" in table.rows else {}
        if options.json:
            for verdict in table.verdicts:
                print(json.dumps({"workload": "arrays", **vars(verdict)}, sort_keys=True))
            for name, why in {**table.missing, **table.failed}.items():
                print(json.dumps({"workload": "arrays", "memory": name, "not_measured": why}))
        else:
            show_all(table, sizes)
    for name, why in table.failed.items():
        say(f"bench-arrays: {name}: it failed: {why}")
    return 1 if table.failed or any("NOT MET" in v.verdict for v in table.verdicts) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
