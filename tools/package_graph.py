#!/usr/bin/env python3
"""package_graph: the dependency graph of the distribution's own package index, as an edge list.

Usage: tools/package_graph.py [FILE] > edges.txt. FILE is a Packages file; without it, what
`apt-cache dumpavail` prints. A line `# vertex NUMBER NAME` names each vertex; `FROM TO` is an edge
from a package to one that it depends on, recommends or suggests (all alternatives).
"""

import re
import subprocess
import sys

FIELDS = {"Depends", "Pre-Depends", "Recommends", "Suggests"}
NAME = re.compile(r"\s*([a-z0-9][a-z0-9+.-]*)")


def read_index(path):
    """The text of the index, line by line."""
    if path:
        with open(path, encoding="utf-8", errors="replace") as file:
            yield from file
        return
    command = ["apt-cache", "dumpavail"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as apt:
        yield from apt.stdout
    if apt.returncode != 0:
        sys.exit("package_graph: apt-cache dumpavail failed: run apt-get update, or name a file")


def edges_of(lines):
    """Yields (package, other) for each relation."""
    package = None
    for line in lines:
        field, colon, value = line.partition(":")
        if not colon or line[0].isspace():
            continue
        if field == "Package":
            package = value.strip()
        elif field in FIELDS and package:
            for alternative in re.split(r"[,|]", value):
                match = NAME.match(alternative)
                if match:
                    yield package, match.group(1)


def main(arguments):
    numbers = {}
    edges = set()
    for pair in edges_of(read_index(arguments[0] if arguments else None)):
        edges.add(tuple(numbers.setdefault(name, len(numbers)) for name in pair))
    if not edges:
        sys.exit("package_graph: the index is empty: run apt-get update, or name a Packages file")
    for name, number in numbers.items():
        print(f"# vertex {number} {name}")
    for source, target in sorted(edges):
        print(source, target)


if __name__ == "__main__":
    main(sys.argv[1:])
