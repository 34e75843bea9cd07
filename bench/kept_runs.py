"""kept_runs: the runs behind pages, kept beside them. If one row is measured anew its runs are
replaced, and those of all others stay.

Lines of JSON: the machine, then the runs, with the day of each.
"""

import datetime
import json
import os
import platform
import sys

from bench_command import Failed


def machine():
    return f"{os.cpu_count()} processors, Linux {platform.release().split('-')[0]}"


def merged(path, measured, group_of, rank_of):
    """The lines of `measured`, and those of the file at `path` of other groups, if there is one,
    and it is of this machine. They are that file's from now on, in the order of rank_of(line);
    what has none (None) goes."""
    today = datetime.date.today().isoformat()
    lines = [{**line, "measured": today} for line in measured]
    replaced = {group_of(line) for line in lines}
    lines = [line for line in _read(path) if group_of(line) not in replaced] + lines
    lines = [line for line in lines if rank_of(line) is not None]
    lines.sort(key=rank_of)
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
    print(f"{path}: measured on another machine ({head.get('machine')}): those runs go",
          file=sys.stderr)
    return []


def times_of(runs, key_of):
    """How often each point was measured, at least, and when; key_of(run) is the same for all runs
    of a point."""
    counts = {}
    for run in runs:
        counts[key_of(run)] = counts.get(key_of(run), 0) + 1
    least = min(counts.values())
    often = "each run once" if least == 1 else f"the median of {least} runs"
    days = sorted({run["measured"] for run in runs if "measured" in run})
    return ", ".join((often, " to ".join(dict.fromkeys((days[0], days[-1]))))) if days else often
