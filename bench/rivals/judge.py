"""Judge: what is asked of named arrays, as arithmetic on seconds."""

import statistics
from dataclasses import dataclass

OURS = "outcore"
WRITE_FLOOR_MIN, WRITE_ADIOS_MIN = 0.95, 1.3
READ_FLOOR_MIN, READ_ADIOS_MIN = 0.95, 1.2
PLANES_MIN = 1.5
FIRST_SECONDS_MAX = 0.001
VIEW_MIN = 0.95  # of the speed of copying
LINES_MAX, TOKENS_MAX = 16, 132
DIFFER_MAX = 0.2  # between the first and the last run


@dataclass
class Verdict:
    """One line of the table."""

    row: str
    title: str
    measured: str
    asked: str
    verdict: str


@dataclass
class Runs:
    """What one program took in one phase."""

    kind: str  # outcore, floor, adios, other
    seconds: list
    first_seconds: list

    def median(self):
        return statistics.median(self.seconds)

    def first(self):
        return statistics.median(self.first_seconds)

    def spread(self):
        return (max(self.seconds) - min(self.seconds)) / self.median()

    def differ(self):
        """How far the first and the last run are from each other."""
        first, last = self.seconds[0], self.seconds[-1]
        return abs(first - last) / min(first, last)


def best(phase, kinds):
    """The name of the fastest of these kinds in a phase ({name: Runs}), or None."""
    names = [name for name, runs in phase.items() if runs.kind in kinds]
    return min(names, key=lambda name: phase[name].median(), default=None)


def judged(row, title, measured, asked, is_met, unsure=0.0):
    verdict = "met" if is_met else "NOT MET"
    if unsure > DIFFER_MAX:
        verdict += f", but runs differ by {unsure:.0%}: measure again"
    return Verdict(row, title, measured, asked, verdict)


def against(row, title, phase, kinds, whom, least):
    """How many times as fast we are as the best of these kinds."""
    asked = f">= {least} x {whom}"
    name = best(phase, kinds)
    if name is None or OURS not in phase:
        return Verdict(row, title, "-", asked, "not measured")
    ours, other = phase[OURS], phase[name]
    ratio = other.median() / ours.median()
    return judged(row, title, f"{ratio:.2f} x ({name} {other.median():.3f} s, "
                  f"{OURS} {ours.median():.3f} s)", asked, ratio >= least,
                  max(ours.differ(), other.differ()))


def write(phases):
    phase, title = phases.get("write", {}), "write, durable"
    return [against("write", title, phase, ("floor",), "the plain floor", WRITE_FLOOR_MIN),
            against("write", title, phase, ("adios",), "the better ADIOS", WRITE_ADIOS_MIN)]


def same(phases):
    phase, title = phases.get("same", {}), "read, same boxes, copying"
    return [against("same", title, phase, ("floor",), "the plain floor", READ_FLOOR_MIN),
            against("same", title, phase, ("adios",), "the better ADIOS", READ_ADIOS_MIN)]


def planes(phases):
    return [against("planes", "read, by planes", phases.get("planes", {}), ("adios", "other"),
                    "the best rival", PLANES_MIN)]


def view(phases):
    viewed = phases.get("view", {}).get(OURS)
    copied = phases.get("planes", {}).get(OURS)
    first_asked = f"<= {FIRST_SECONDS_MAX * 1000:.0f} ms"
    last_asked = f"as copying (>= {VIEW_MIN} x)"
    title = "read as a view, to the "
    verdicts = []
    if viewed is None:
        verdicts.append(Verdict("view", title + "first element", "-", first_asked, "not measured"))
    else:
        first = viewed.first()
        verdicts.append(judged("view", title + "first element", f"{first * 1000:.2f} ms",
                               first_asked, first <= FIRST_SECONDS_MAX))
    if viewed is None or copied is None:
        verdicts.append(Verdict("view", title + "last", "-", last_asked, "not measured"))
    else:
        ratio = copied.median() / viewed.median()
        verdicts.append(judged("view", title + "last", f"{ratio:.2f} x ({viewed.median():.3f} s, "
                               f"copying {copied.median():.3f} s)", last_asked, ratio >= VIEW_MIN,
                               max(viewed.differ(), copied.differ())))
    return verdicts


def code(sizes):
    """`sizes`: {library: (lines, tokens)} of the example."""
    lines, tokens = sizes[OURS]
    return [judged("code", "the paper's example: lines", str(lines), f"<= {LINES_MAX}",
                   lines <= LINES_MAX),
            judged("code", "the paper's example: tokens", str(tokens), f"<= {TOKENS_MAX}",
                   tokens <= TOKENS_MAX)]
