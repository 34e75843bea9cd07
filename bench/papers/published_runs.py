"""published_runs: the runs and profiles of the papers' pages, with what those are drawn from."""

import kept_runs
from experiment import GENOMES, RIVALS, STATIC
from experiments import EXPERIMENTS
from larger import can_grow, larger

NAME = "runs.json"
_KEPT = {"row", "point", "column", "times", "measured", "profile", "by_kind", "by_function",
         "rate", "unit", "seconds", "stopped", "device", "name", "value", "how", "asked", "is_most",
         "is_met", "options"}
# What sections of tables of traffic add to the keys of their experiment.
_KEPT_OF_TRAFFIC = {"page_bytes", "data_bytes", "processes", "faults", "major_faults"}
_BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
_ORDER = {name: i for i, name in enumerate(_BY_NAME)}


def merged(path, measured):
    """The lines of `measured`, and those kept at `path` of other rows (kept_runs.merged()), unless
    they are of a point that is not there any more, or has had other options."""
    return kept_runs.merged(path, [_kept(line) for line in measured], _group_of, _rank_of)


def options_of(line):
    """What the run of a line is made with; None: there is no such point."""
    experiment = _BY_NAME.get(_row_of(line))
    if experiment is None:
        return None
    times = line.get("times", 1)
    one = larger(experiment, times) if times > 1 and can_grow(experiment) else experiment
    point = next((p for p in one.points if p.label == line["point"]), None)
    if point is None:
        return None
    return " ".join([one.options, *point.options, *map("=".join, point.variables)])


def _rank_of(line):
    is_current = line.get("options") == options_of(line) is not None
    return ("profile" in line, _ORDER[_row_of(line)]) if is_current else None


def _row_of(line):
    return line.get("profile") or line["row"]


def _group_of(line):
    """Profiles stay where a row is measured without."""
    return _row_of(line), "profile" in line, line.get("times", 1)


def _kept(line):
    kept, experiment = set(_KEPT), _BY_NAME.get(_row_of(line))
    if experiment is not None:
        kept |= {key for _, key in experiment.keys}
        kept |= _KEPT_OF_TRAFFIC if experiment.shows == "traffic" else set()
    return {key: value for key, value in {"options": options_of(line), **line}.items()
            if key in kept}


def command_of(experiment):
    if experiment.by == RIVALS or not experiment.workload:
        return f"make bench-papers OPTIONS=\"--rows {experiment.name}\""
    if experiment.by == STATIC:
        return f"bench/static/{experiment.workload} {experiment.options}"
    options = experiment.options.replace(GENOMES, "build/genomes")
    return f"outcore bench {experiment.workload} {options}"


def device_of(runs):
    devices = list(dict.fromkeys(run["device"] for run in runs if run.get("device")))
    device = next((d for d in devices if d.startswith("zram")), devices[0] if devices else "")
    if not device.startswith("zram"):
        return ""
    return (f", {device}, a disk in memory whose reads take some microseconds: what a fault costs "
            "counts there as it does on no other device")
