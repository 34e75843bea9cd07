#!/usr/bin/env python3
"""check_layers: products lean on the core alone, and rooms on lower floors (ARCHITECTURE.md).

Usage: tools/check_layers.py [ROOT]. Prints one line a problem; exit status 1 if there is one.
"""

import pathlib
import re
import sys

import sources

# product -> room -> floor. A room includes lower floors of its product, and the core.
PRODUCTS = {
    "core": {
        "base": 1, "os": 2, "packing": 3, "region": 4, "budget": 4, "policy": 4, "prefetch": 4,
        "store": 4, "metrics": 4, "buffer": 5, "published": 5, "recording": 6,
        "paging": 6, "runtime": 7, "c": 8, "alone": 9,
    },
    "far": {"redis": 1, "store": 2},
    "checkpoints": {"pool": 1, "store": 2, "capture": 3, "c": 4},
    "heaps": {"volatile": 1, "persistent": 1, "c": 2},
    "arrays": {"container": 1, "c": 2},
    "umap": {"settings": 1, "stores": 1, "session": 2, "c": 3},
    "run": {"preload": 1},
    "sight": {"page": 1},
}
# Beside the library: these use the public API, as any user would, and what is named here.
OUTSIDE_MAY_USE = {
    "cli": {"cli"},
    "bench": {"bench", "cli"},
    "heaps/occ": {"cli"},
    "arrays/formats": {"arrays/commands"},
    "examples": set(),
    **{f"{product}/commands": {"cli"} for product in PRODUCTS},
    "bench/commands": {"bench", "cli"},
}
OUTSIDE_MAY_USE["cli"] |= {f"{product}/commands" for product in PRODUCTS}
# `outcore run --hosts` starts servers for the program.
OUTSIDE_MAY_USE["run/commands"] |= {"far/commands", "sight/commands"}
OUTSIDE_MAY_USE["arrays/commands"] |= {"arrays/formats"}
# One type of JSON for all: cli/json.h hands the core's on to the commands and benchmarks, and the
# module of Zarr, which sees nothing of the command's, compiles it into itself. One rule for names
# in lines, in the table of a run and the command's; a header alone.
OUTSIDE_MAY_INCLUDE = {
    "cli": {"core/base/json_fields.h", "core/base/plain_text.h"},
    "arrays/formats": {"core/base/json.h", "cli/assert.h"},
    # The command and the library agree on the window, on what earlier runs left, and on what a
    # record is; headers alone.
    "run/commands": {"run/preload/window_place.h", "run/preload/call_shapes.h",
                     "run/preload/go_note.h", "core/base/earlier_output.h",
                     "core/base/record_file.h"},
    # One rule for what is to be tried next, in the table of a run and its report; a header alone.
    # Which variables of a program are options: no others go to a page.
    # What a record says of the machine, also one that is written for a program that could not.
    "sight/commands": {"core/base/next_run.h", "core/runtime/option_table.h",
                       "core/recording/run_facts.h"},
    # Types of objects are told in the same words by the command and by errors; a header alone.
    "heaps/commands": {"heaps/persistent/type_text.h"},
    # As the library reads its config file.
    "far/commands": {"core/os/written_pipe.h"},
}
# The umbrella is the one place that knows all products.
UMBRELLA = "umbrella"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)


def room_of(path):
    """The room a file lives in, or None for files that are in none (tests, tools)."""
    parts = pathlib.PurePosixPath(path).parts
    if "tests" in parts[:2]:
        return None
    if parts[0] in PRODUCTS or "/".join(parts[:2]) in OUTSIDE_MAY_USE:
        return "/".join(parts[:2]) if len(parts) > 2 else None
    if parts[0] in OUTSIDE_MAY_USE or parts[0] in ("include", UMBRELLA):
        return parts[0]
    return None


def why_not(room, target):
    """Why a file of `room` must not include one of `target`, or None if it may."""
    if target in (room, "include") or room == UMBRELLA:
        return None
    if room in OUTSIDE_MAY_USE:
        if target in OUTSIDE_MAY_USE[room]:
            return None
        return f"{room} is outside the library and includes {target}: use the public API"
    product, _, name = room.partition("/")
    to_product, _, to_name = target.partition("/")
    floors = PRODUCTS.get(to_product, {})
    if room == "include" or to_name not in floors:
        return f"{room} includes {target}, which is not below it"
    if product != to_product:
        if to_product == "core":
            return None
        return f"{product} includes {target}: products lean on the core, not on each other"
    if floors[to_name] < PRODUCTS[product][name]:
        return None
    return f"{room} includes {target}, which is not on a lower floor"


def check_file(path, text):
    room = room_of(path)
    if room is None:
        return []
    if room not in OUTSIDE_MAY_USE and room not in ("include", UMBRELLA):
        product, _, name = room.partition("/")
        if name not in PRODUCTS[product]:
            remedy = "give it a floor in ARCHITECTURE.md and tools/check_layers.py"
            return [sources.problem(path, 1, f"{room} is a room without a floor: {remedy}")]
    found = []
    for match in INCLUDE.finditer(sources.strip_cpp(text, keep_literals=True)):
        quote, included = match.groups()
        if included in OUTSIDE_MAY_INCLUDE.get(room, ()):
            continue
        target = "include" if included.startswith("outcore/") else room_of(included)
        reason = None
        if target is not None:
            reason = why_not(room, target)
        elif quote == '"':
            reason = f'"{included}" is in no room: write its path from the top, or <> of the system'
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
