"""Local memory: how much slower programs are with less of it, by page size, as figures 6 to 11 of
DLM."""

from functools import partial

import gnuplot
import judge
from bench_command import Failed
from judge import Verdict
from runs import say

SHARES, SHARES_QUICK = (8, 20, 40, 60, 80, 100), (8, 50, 100)
PAGES, PAGES_QUICK = ("4k", "16k", "64k", "256k", "1M"), ("4k", "64k", "1M")
SECONDS_MAX = 10  # a run of a second in plain memory or less; pages that do not fit take minutes
STREAM_KEYS = {"copy": "copy_mean_mib_s", "triad": "triad_mean_mib_s"}


def table(row, title, workload, options, keys=None):
    """What measures the row `row` of `make bench-far`: times over those in plain memory, by local
    share and page size. `options`: of all data, and of `--quick`. `keys`: rates of a line, by what
    they are of; each has its figure."""
    return partial(_measure, row=row, title=title, workload=workload, options=options,
                   keys=keys or {workload: "rate"})


def _measure(context, figures, *, row, title, workload, options, keys):
    options = context.scale(*options).split()
    dram = context.bench(row, workload, *options, memory="dram")
    times, verdicts = {name: {} for name in keys}, []
    for page in context.scale(PAGES, PAGES_QUICK):
        slowest, not_measured = {}, []
        for share in context.scale(SHARES, SHARES_QUICK):
            try:
                (line,) = context.bench(row, workload, *options, "--page", page, "--budget",
                                        f"{share}%", "--limit", SECONDS_MAX, repeats=1,
                                        store=context.engines.redis_uri(row))
            except Failed as why:  # a budget of too few such pages
                say(f"  {row}: pages of {page}, {share} % local: {why}")
                not_measured.append(f"{share} % refused")
                continue
            if line["stopped"]:
                not_measured.append(f"{share} % stopped")
                continue
            for name, key in keys.items():
                slower = judge.median(dram, key) / line[key]
                times[name].setdefault(f"pages of {page}", []).append((share, slower))
                slowest[name] = max(slower, slowest.get(name, 0))
        told = [f"{name} {slower:.0f} x dram" for name, slower in slowest.items()]
        verdicts.append(Verdict(f"{title}, pages of {page}, at its slowest",
                                ", ".join(told + not_measured), "-", ""))
    for name, curves in times.items():
        path = f"{figures}/{workload}-{name}.png" if len(keys) > 1 else f"{figures}/{workload}.png"
        gnuplot.draw_lines(path, f"{title} {name if len(keys) > 1 else ''}".strip()
                           + ": far memory against plain memory", "local memory / data, %",
                           "time / time in plain memory", curves)
        say(f"  {row}: {path}")
    return verdicts
