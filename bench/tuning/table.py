#!/usr/bin/env python3
"""table: the default settings beside the best of a sweep, and the better of mmap's two advices.

tools/bench_tuning.sh (`make bench-tuning`) makes the device and names the paths.

The sweep tries page size × readahead with clusters switched off, then each policy and delivery
with the best of these. The winner of a sweep is also its luckiest run: so winner, default and
rivals then run again, in turns, and only these runs count.
"""

import json
import math
import os
import statistics
import sys

from rows import ROWS

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import bench_command  # noqa: E402
import table_options  # noqa: E402
from bench_command import Failed  # noqa: E402

PAGES = ("4k", "16k", "64k", "256k", "1M")
READAHEADS = ("0", "2M")
POLICIES = ("fifo", "di-mmap")
LIMIT_SECONDS = 60
DEFAULT = {}
RIVALS = ("mmap", "mmap-random")


def run(options, row, memory, setting):
    """One run in its own process and cgroup: its line of JSON; None: it did not end in time."""
    words = [*row.options, "--memory", memory, "--keep", "--dir", options.folder, "--limit",
             LIMIT_SECONDS]
    variables = {}
    for name, value in setting.items():
        if name in ("readahead", "fetch"):
            variables[f"OUTCORE_{name.upper()}"] = value
        else:
            words += [f"--{name}", value]
    (found,) = bench_command.lines_of(options.outcore, row.workload, *words, **variables)
    return None if found.get("stopped") else found


def rate_of(found):
    return 0.0 if found is None else found["rate"]


def sweep(options, row, see):
    """The setting by hand that is fastest, one run each."""
    best, best_rate = None, -1.0

    def attempt(setting):
        nonlocal best, best_rate
        try:
            rate = rate_of(run(options, row, "outcore", setting))
        except Failed as error:  # a page too large for the budget, say
            see(row, setting, str(error))
            return
        see(row, setting, f"{rate:.4g}")
        if rate > best_rate:
            best, best_rate = setting, rate

    for page in PAGES:
        for readahead in READAHEADS:
            attempt({"page": page, "readahead": readahead, "fetch": "page"})
    if best is None:
        raise Failed("no setting works")
    by_hand = best
    for policy in POLICIES:
        attempt({**by_hand, "policy": policy})
    by_hand = best
    for delivery in row.deliveries:
        attempt({**by_hand, "delivery": delivery})
    return best


def words_of(setting):
    return " ".join(f"{k}={v}" for k, v in setting.items() if k != "fetch") or "default"


def measure(options, row, see):
    best = sweep(options, row, see)
    rates = {"default": [], "best": [], **{rival: [] for rival in RIVALS}}
    last = {}
    for _ in range(options.repeats):
        for name, memory, setting in (("default", "outcore", DEFAULT), ("best", "outcore", best),
                                      *((rival, rival, {}) for rival in RIVALS)):
            try:
                found = run(options, row, memory, setting)
            except Failed:
                if name in RIVALS:
                    continue  # graph-construct has one mmap only
                raise
            rates[name].append(rate_of(found))
            last[name] = found
    medians = {name: statistics.median(found) for name, found in rates.items() if found}
    rival = max((medians.get(name, 0.0) for name in RIVALS), default=0.0)
    first = last["default"] or {}
    return {"row": row.name, "default": medians["default"], "best": medians["best"],
            "setting": words_of(best), "ratio": medians["default"] / (medians["best"] or math.nan),
            "mmap": medians["default"] / rival if rival else math.nan, "rates": rates,
            "fetches": first.get("fetches", ""), "fills": first.get("fills"),
            "read_bytes": first.get("read_bytes")}


def print_table(results):
    print(f"{'':16} {'default/best':>12} {'/better mmap':>12}  "
          "best by hand; what misses brought in")
    for r in results:
        print(f"{r['row']:16} {r['ratio']:12.2f} {r['mmap']:12.2f}  {r['setting']}; {r['fetches']}")
    for key, words in (("ratio", "default / best"), ("mmap", "default / better mmap")):
        ratios = [r[key] for r in results if r[key] > 0]
        if ratios:
            mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
            print(f"geometric mean of {words}: {mean:.2f}; least {min(ratios):.2f}")


def main(arguments):
    options = table_options.parse(arguments, "bench-tuning", (__doc__ or "").splitlines()[0],
                                  "each run once", [row.name for row in ROWS],
                                  ("folder", "outcore", "json-file"))
    rows = [row for row in ROWS if not options.rows or row.name in options.rows]
    if options.list:
        print("\n".join(row.name for row in rows))
        return 0
    if options.folder is None or options.outcore is None:
        raise SystemExit("bench-tuning: no device: start it by make bench-tuning")

    def see(row, setting, words):
        print(f"  {row.name}: {words_of(setting)}: {words}", file=sys.stderr, flush=True)

    results, is_whole = [], True
    for row in rows:
        try:
            results.append(measure(options, row, see))
        except Failed as error:
            print(f"bench-tuning: {row.name}: {error}", file=sys.stderr)
            is_whole = False
            continue
        print_table(results[-1:])
        if options.json_file is not None:
            with open(options.json_file, "a", encoding="utf-8") as lines:
                lines.write(json.dumps(results[-1]) + "\n")
    print_table(results)
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
