"""published_runs: the runs behind the pages, kept beside them, so that one row can be measured anew
by itself: of it they are replaced, of all others they stay.

Lines of JSON: the machine, then runs and profiles, with what the pages are drawn from of each.
"""

import datetime
import json
import os
import platform
import sys

from bench_command import Failed
from experiments import EXPERIMENTS

NAME = "runs.json"
_KEPT = {"row", "point", "column", "times", "measured", "profile", "by_kind", "rate", "unit",
         "seconds", "stopped", "device", "name", "value", "how", "asked", "is_most", "is_met"}
# What sections of tables of traffic add to the keys of their experiment.
_KEPT_OF_TRAFFIC = {"page_bytes", "data_bytes", "processes", "faults", "major_faults"}


def machine():
    return f"{os.cpu_count()} processors, Linux {platform.release().split('-')[0]}"


def merged(path, measured):
    """The lines of `measured`, and those of the file at `path` of other rows, if there is one, and
    it is of this machine. They are that file's from now on."""
    today = datetime.date.today().isoformat()
    lines = [{**_kept(line), "measured": today} for line in measured]
    replaced = {_group_of(line) for line in lines}
    lines = [line for line in _read(path) if _group_of(line) not in replaced] + lines
    order = {experiment.name: i for i, experiment in enumerate(EXPERIMENTS)}
    lines = [line for line in lines if _row_of(line) in order]
    lines.sort(key=lambda line: ("profile" in line, order[_row_of(line)]))
    part = f"{path}.part"  # whole, or not at all
    with open(part, "w", encoding="utf-8") as file:
        for line in ({"machine": machine()}, *lines):
            file.write(json.dumps(line) + "\n")
    os.replace(part, path)
    return lines


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            head, *lines = (json.loads(line) for line in file)
    except FileNotFoundError:
        return []
    except ValueError as why:
        raise Failed(f"{path} is damaged ({why}): restore it, or delete it and measure all "
                     "rows") from None
    if head == {"machine": machine()}:
        return lines
    print(f"bench-papers: {path}: measured on another machine ({head.get('machine')}): those runs "
          "go", file=sys.stderr)
    return []


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
