"""verdict: what the runs of an experiment say, beside what the paper says: arithmetic alone."""

import statistics
from dataclasses import dataclass, field

from experiment import is_ours


# No rivals to what has mapped the data, unless the paper's claim is about them.
MEMORY = ("dram", "malloc")  # plain, without limit
APART = ("direct", *MEMORY, "two-pass")
COUNTS_OF_PAGES = ("fills", "waits", "minor_faults")


@dataclass(frozen=True)
class Line:
    """What was found at a point of the axis."""

    point: str
    values: dict[str, float]  # by column: the median; 0: stopped
    unit: str
    is_asked: bool
    is_met: bool
    ratio: float = 0.0  # rates: Outcore's over the best rival's; 0: there is none
    rival: str = ""
    over: float = 0.0  # rates: Outcore's over what the experiment stands beside; 0: there is none
    is_over_met: bool = False  # what is asked, over mmap without advice, the papers' rival
    more: dict = field(default_factory=dict)  # what only the kind of experiment has


def median_of(runs, point, column, key="rate"):
    """None: not measured; 0: stopped."""
    found = [0.0 if r["stopped"] else _value(r, key) for r in runs
             if r["point"] == point and r["column"] == column]
    return statistics.median(found) if found else None


def _value(run, key):
    """waits: touches that waited for the store: the kernel's major faults, or those that Outcore
    was asked."""
    if key != "waits":
        return run[key]
    return run["faults"] if is_ours(run["column"]) else run["major_faults"]


def columns_of(experiment):
    return ("outcore", *experiment.rivals)


def medians_at(experiment, runs, point, key="rate"):
    found = {c: median_of(runs, point, c, key) for c in columns_of(experiment)}
    return {column: value for column, value in found.items() if value is not None}


def is_asked(experiment, point):
    return experiment.asked > 0 and (not experiment.at or point.label in experiment.at)


def _measured_points(experiment, runs):
    have = {r["point"] for r in runs if r["column"] == "outcore"}
    return [point for point in experiment.points if point.label in have]


def judge_rates(experiment, runs):
    """A line for each point of the axis that was measured."""
    column, base = experiment.beside
    is_over = experiment.beside != ("mmap", "")
    lines = []
    for point in _measured_points(experiment, runs):
        rates = medians_at(experiment, runs, point.label)
        # What the paper's claim is about, if it is not mmap, comes first.
        rivals = {m: r for m, r in rates.items() if m != "outcore"}
        first = experiment.rivals[0] if experiment.rivals else ""
        is_named = first in APART and first in rivals
        named = {first: rivals[first]} if is_named else {
            m: r for m, r in rivals.items() if m not in APART and not is_ours(m)}
        rival = max(named, key=named.__getitem__, default="")
        best = named.get(rival, 0.0)
        ratio = rates["outcore"] / best if best else 0.0
        beside = median_of(runs, base or point.label, column)
        over = rates["outcore"] / beside if beside else 0.0
        all_stopped = not is_over and best == 0 and rates["outcore"] > 0
        is_met = (over if is_over else ratio) >= experiment.asked or all_stopped
        # mmap that did not end is slower by more than is known.
        has_beaten = over >= experiment.asked or (beside == 0 and rates["outcore"] > 0)
        is_over_met = not is_over and rival not in ("mmap", *APART) and has_beaten
        lines.append(Line(point.label, rates, unit_of(runs), is_asked(experiment, point), is_met,
                          ratio, rival, over, is_over_met))
    return lines


def unit_of(runs):
    """Of those that were not stopped; "" if all were."""
    return next((run["unit"] for run in runs if run["unit"]), "")


def plain_rate(runs, key="rate"):
    """Plain memory has no share that is local: all of its runs, beside those of each, are one."""
    return statistics.median(r[key] for r in runs if r["column"] == "dram")


def judge_slower(experiment, runs):
    """Times over those of plain memory, by curve: (column, name of the key). The slowest curve of
    the default settings counts."""
    plain = {key: plain_rate(runs, key) for _, key in experiment.keys}
    lines = []
    for point in _measured_points(experiment, runs):
        curves = {}
        for name, key in experiment.keys:
            for column, rate in medians_at(experiment, runs, point.label, key).items():
                if column != "dram":
                    curves[f"{column} {name}".strip()] = plain[key] / rate if rate else 0.0
        ours = [times for name, times in curves.items() if "," not in name]
        is_met = all(0 < times <= experiment.asked for times in ours)
        lines.append(Line(point.label, curves, unit_of(runs), is_asked(experiment, point),
                          is_met))
    return lines


def judge_spread(experiment, runs):
    """A line for each column: its times, and their spread."""
    lines = []
    for column in columns_of(experiment):
        found = [r for r in runs if r["column"] == column]
        seconds = [r["seconds"] for r in found if not r["stopped"]]
        if not seconds:
            continue
        stopped = f", {len(found) - len(seconds)} of {len(found)} stopped"
        spread = (max(seconds) - min(seconds)) / statistics.median(seconds)
        name = column if len(seconds) == len(found) else column + stopped
        lines.append(Line(name, {"median": statistics.median(seconds), "shortest": min(seconds),
                                 "longest": max(seconds)}, "s", column == "outcore",
                          spread <= experiment.asked, more={"spread": spread}))
    return lines


def judge_traffic(experiment, runs):
    """Bytes (pages count as bytes) over those that must move, by column and key. The last key
    counts."""
    lines = []
    for point in _measured_points(experiment, runs):
        here = [r for r in runs if r["point"] == point.label]
        ended = next((r for r in here if not r["stopped"]), None)
        if ended is None:
            continue
        moved = {}
        for name, key in experiment.keys:
            unit_bytes = ended["page_bytes"] if key in COUNTS_OF_PAGES else 1
            for column, count in medians_at(experiment, here, point.label, key).items():
                moved[f"{column}; {name}" if name else column] = (
                    count * unit_bytes / experiment.base_bytes)
        last = experiment.keys[-1][0]
        is_met = 0 < moved[f"outcore; {last}" if last else "outcore"] <= experiment.asked
        accessed = ended["data_bytes"] * ended["processes"] / experiment.base_bytes
        lines.append(Line(point.label, moved, "times", is_asked(experiment, point), is_met,
                          more={"accessed": accessed}))
    return lines


@dataclass(frozen=True)
class Behind:
    """A point that is to be explained, and what it is compared with."""

    point: str
    column: str  # "": nothing
    base: str  # that column's point
    is_ahead: bool  # of that column, by less than is asked

    @property
    def other(self):
        """How what it is compared with is called."""
        is_named = is_ours(self.column) or self.base != self.point
        return f"{self.column}, {self.base}" if is_named and self.column else self.column


def behind(experiment, runs):
    """Of rates and times: what is asked and not met, the worst first; and of the points of which
    nothing is asked the one where the best rival is ahead by most."""
    if experiment.shows == "slower":
        return [Behind(line.point, "dram", line.point, False)
                for line in judge_slower(experiment, runs) if line.is_asked and not line.is_met]
    if experiment.shows != "rates":
        return []
    column, base = experiment.beside
    is_over = experiment.beside != ("mmap", "")
    lines = judge_rates(experiment, runs)

    def told(line):
        # Beside mmap it is the best rival that counts.
        if line.is_asked and is_over:
            return Behind(line.point, column, base or line.point, line.over >= 1)
        return Behind(line.point, line.rival, line.point, line.ratio >= 1)

    asked = [line for line in lines if line.is_asked and not line.is_met]
    asked.sort(key=lambda line: line.over if is_over else line.ratio)
    unasked = [line for line in lines if not line.is_asked and line.ratio < 1
               and line.values.get(line.rival, 0) > 0]
    if unasked:
        asked.append(min(unasked, key=lambda line: line.ratio))
    return [told(line) for line in asked]
