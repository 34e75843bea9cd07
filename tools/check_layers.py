#!/usr/bin/env python3
"""check_layers: a room includes lower floors only, never its own (ARCHITECTURE.md).

Usage: tools/check_layers.py [ROOT]. Prints one line a problem; exit status 1 if there is one.
"""

import pathlib
import re
import sys

import sources

FLOORS = {
    "include": 0,
    "src/base": 1,
    "src/os": 2,
    "src/packing": 3,
    "src/redis": 4,
    "src/versioned": 4,
    "src/region": 5,
    "src/budget": 5,
    "src/policy": 5,
    "src/prefetch": 5,
    "src/store": 5,
    "src/metrics": 5,
    "src/paging": 6,
    "src/runtime": 7,
    "src/heap": 8,
    "src/arrays": 8,
    "src/checkpoints": 9,
    "src/c": 10,
    "src/preload": 10,
    "cli": 11,
    "bench": 11,
    "occ": 11,
    "examples": 11,
}
# Outside the house: these use the public API, as any user would.
OUTSIDE_MAY_USE = {
    "cli": {"include", "cli", "bench"},
    "bench": {"include", "bench"},
    "occ": {"include", "occ"},
    "examples": {"include", "examples"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)


def room_of(path):
    """The room a file lives in, or None for files that are in none (tests, tools)."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[0] == "src":
        return "/".join(parts[:2])
    return parts[0] if parts[0] in FLOORS else None


def room_named(quote, included):
    """The room that an include directive reaches into, or None if it is none of ours."""
    first = included.split("/")[0]
    if first == "outcore":
        return "include"
    if quote == "<" or "/" not in included:
        return None
    if first in OUTSIDE_MAY_USE:
        return first
    return f"src/{first}" if f"src/{first}" in FLOORS else None


def why_not(room, target, quote, included):
    """Why a file of `room` must not say this, or None if it may."""
    if quote == '"' and target is None:
        if "/" not in included:
            return f'"{included}" has no room: write it as "room/{included}"'
        return f'"{included}" is in no room: use <> for the system\'s headers'
    if target is None or target == room:
        return None
    if room in OUTSIDE_MAY_USE:
        if target in OUTSIDE_MAY_USE[room]:
            return None
        return f"{room} is outside the house and includes {target}: use the public API"
    if FLOORS[target] < FLOORS[room]:
        return None
    if FLOORS[target] == FLOORS[room]:
        return f"{room} includes {target} of its own floor {FLOORS[room]}: rooms are strangers"
    above = f"{target} (floor {FLOORS[target]})"
    return f"{room} (floor {FLOORS[room]}) includes {above}: only downwards"


def check_file(path, text):
    room = room_of(path)
    if room is None:
        return []
    if room not in FLOORS:
        remedy = "give it a floor in ARCHITECTURE.md and tools/check_layers.py"
        return [sources.problem(path, 1, f"{room} is a room without a floor: {remedy}")]
    found = []
    for match in INCLUDE.finditer(sources.strip_cpp(text, keep_literals=True)):
        quote, included = match.groups()
        reason = why_not(room, room_named(quote, included), quote, included)
        if reason:
            found.append(sources.problem(path, text.count("\n", 0, match.start(1)) + 1, reason))
    return found


def main(arguments):
    root = pathlib.Path(arguments[0]).resolve() if arguments else sources.ROOT
    files = [p for p in sources.list_files(root) if p.suffix in sources.CPP_SUFFIXES]
    problems = [line for p in files for line in check_file(p, sources.read(root, p))]
    return sources.report("check_layers", problems, len(files))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
