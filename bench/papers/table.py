#!/usr/bin/env python3
"""table: the experiments of the papers at a small size, by default settings, beside mmap.

tools/bench_papers.sh (`make bench-papers`) makes the device and names the paths. page.py draws the
pages from the file of its runs.
"""

import json
import os
import subprocess
import sys

from experiments import EXPERIMENTS
from verdict import judge, print_table

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import table_options  # noqa: E402

LIMIT_SECONDS = 40


class Wrong(Exception):
    """A run failed: its message."""


def run(options, experiment, point, memory):
    """One run in its own process and cgroup: its line of JSON."""
    command = [options.outcore, "bench", experiment.workload, *experiment.options.split(),
               *point.options, "--memory", memory, "--json", "--keep", "--dir", options.folder,
               "--limit", str(LIMIT_SECONDS)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OUTCORE_")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["it failed"]
        raise Wrong(f"{' '.join(command[1:])}: {said[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(options, experiment, see):
    """All points, the memories in turns: lines of JSON with the experiment's and point's names."""
    for point in experiment.points:
        for _ in range(options.repeats):
            for memory in ("outcore", *experiment.rivals):
                found = run(options, experiment, point, memory)
                found["row"], found["point"] = experiment.name, point.label
                see(found)


def main(arguments):
    options = table_options.parse(arguments, "bench-papers", (__doc__ or "").splitlines()[0],
                                  "each run once", [e.name for e in EXPERIMENTS],
                                  ("folder", "outcore", "json-file"))
    wanted = [e for e in EXPERIMENTS if not options.rows or e.name in options.rows]
    if options.list:
        print("\n".join(e.name for e in wanted))
        return 0
    if options.folder is None or options.outcore is None:
        raise SystemExit("bench-papers: no device: start it by make bench-papers")
    is_whole = True
    for experiment in wanted:
        runs = []

        def see(found, runs=runs, experiment=experiment):
            runs.append(found)
            speed = "stopped" if found["stopped"] else f"{found['rate']:.4g} {found['unit']}"
            print(f"  {experiment.name} {found['point']}: {found['memory']}: {speed}",
                  file=sys.stderr, flush=True)
            if options.json_file is not None:
                with open(options.json_file, "a", encoding="utf-8") as lines:
                    lines.write(json.dumps(found) + "\n")

        try:
            measure(options, experiment, see)
        except Wrong as error:
            print(f"bench-papers: {error}", file=sys.stderr)
            is_whole = False
            continue
        print_table(experiment, judge(experiment, runs))
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
