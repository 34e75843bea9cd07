"""published_runs: the runs and profiles of the papers' pages, with what those are drawn from."""

import kept_runs
from experiment import GENOMES, RIVALS, STATIC
from experiments import EXPERIMENTS

NAME = "runs.json"
_KEPT = {"row", "point", "column", "times", "measured", "profile", "by_kind", "by_function",
         "rate", "unit", "seconds", "stopped", "device", "name", "value", "how", "asked", "is_most",
         "is_met"}
# What sections of tables of traffic add to the keys of their experiment.
_KEPT_OF_TRAFFIC = {"page_bytes", "data_bytes", "processes", "faults", "major_faults"}


def merged(path, measured):
    """The lines of `measured`, and those kept at `path` of other rows (kept_runs.merged())."""
    order = {experiment.name: i for i, experiment in enumerate(EXPERIMENTS)}

    def rank_of(line):
        row = _row_of(line)
        return ("profile" in line, order[row]) if row in order else None

    return kept_runs.merged(path, [_kept(line) for line in measured], _group_of, rank_of)


def _row_of(line):
    return line.get("profile") or line["row"]


def _group_of(line):
    """Profiles stay where a row is measured without."""
    return _row_of(line), "profile" in line, line.get("times", 1)


def _kept(line):
    kept = set(_KEPT)
    for experiment in EXPERIMENTS:
        if experiment.name == _row_of(line):
            kept |= {key for _, key in experiment.keys}
            kept |= _KEPT_OF_TRAFFIC if experiment.shows == "traffic" else set()
    return {key: value for key, value in line.items() if key in kept}


def command_of(experiment):
    if experiment.by == RIVALS:
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
