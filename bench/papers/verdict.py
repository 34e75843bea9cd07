"""verdict: what the runs of an experiment say, beside what the paper says."""

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    point: str
    rates: dict[str, float]  # by memory: the median; 0: stopped
    unit: str
    ratio: float  # Outcore's rate over the best rival's; 0: there is none
    rival: str
    is_asked: bool
    is_met: bool


def judge(experiment, runs):
    """A line for each point of the axis that was measured."""
    lines = []
    for point in experiment.points:
        rates = {}
        unit = ""
        for memory in ("outcore", *experiment.rivals):
            found = [r for r in runs if r["point"] == point.label and r["memory"] == memory]
            if found:
                rates[memory] = statistics.median(0.0 if r["stopped"] else r["rate"] for r in found)
                unit = found[-1]["unit"]
        if "outcore" not in rates:
            continue
        # What the paper's claim is about, if it is not mmap, comes first.
        rivals = {m: r for m, r in rates.items() if m != "outcore"}
        first = experiment.rivals[0]
        named = {first: rivals[first]} if first == "direct" and first in rivals else rivals
        rival = max(named, key=named.__getitem__, default="")
        best = named.get(rival, 0.0)
        ratio = rates["outcore"] / best if best else 0.0
        is_asked = experiment.asked > 0 and (not experiment.at or point.label in experiment.at)
        is_met = ratio >= experiment.asked or (best == 0 and rates["outcore"] > 0)
        lines.append(Line(point.label, rates, unit, ratio, rival, is_asked, is_met))
    return lines


def words_of(experiment, line):
    if not line.is_asked:
        return ""
    return f"asked {experiment.asked:g}: {'met' if line.is_met else 'not met'}"


def print_table(experiment, lines):
    print(f"{experiment.title} ({experiment.paper}, {experiment.place}); {experiment.claim}")
    for line in lines:
        rates = "  ".join(f"{memory} {rate:.4g}" if rate else f"{memory} stopped"
                          for memory, rate in line.rates.items())
        ratio = f"{line.ratio:.2f} x {line.rival}" if line.ratio else "all rivals stopped"
        print(f"  {experiment.axis} {line.point:>9}: {rates} {line.unit}; {ratio}  "
              f"{words_of(experiment, line)}".rstrip())
