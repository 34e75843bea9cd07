#!/usr/bin/env python3
"""changed_tests: the labels of ctest that changed files concern.

Usage: tools/changed_tests.py [ROOT] <NAMES. One name of a file a line; prints one label a line, and
says on stderr what has stages of its own. Folders of tests are labels; the command's are one, cli.
"""

import pathlib
import sys

import sources

# What every product is made of: the core, the public headers, the build, what tests share. Of the
# files at the top all but documents.
OF_ALL = {"core", "include", "umbrella", "cmake", "examples"}
SHARED_TESTS = "tests"
STAGES = {"python": "python", "docs": "docs"}  # folders whose tests are a stage


def products_of(root):
    return sorted(path.parent.name for path in root.glob("*/tests") if path.is_dir())


def concerns_all(parts):
    if len(parts) == 1:
        return not parts[0].endswith(".md")
    if parts[0] == SHARED_TESTS:
        return parts[1] != "tools"
    return parts[0] in OF_ALL


def labels_of(root, product):
    return {folder.name for folder in (root / product / "tests").glob("*/") if folder.is_dir()}


def labels(root, names):
    """The labels of the tests that the named files concern."""
    paths = [pathlib.PurePosixPath(name).parts for name in names]
    products = {parts[0] for parts in paths}
    found = {"tools"} if paths else set()
    if any(concerns_all(parts) for parts in paths):
        products = set(products_of(root))
        found.add("example")
    for product in products - {SHARED_TESTS}:
        found |= labels_of(root, product)
    if products & {"bench", "cli"} or any("commands" in parts for parts in paths):
        found.add("cli")
    return sorted(found)


def main(arguments):
    root = pathlib.Path(arguments[0]).resolve() if arguments else sources.ROOT
    names = [line for line in sys.stdin.read().splitlines() if line]
    for folder in sorted({name.split("/")[0] for name in names} & set(STAGES)):
        print(f"of {folder}/: tools/test.sh {STAGES[folder]}", file=sys.stderr)
    print("\n".join(labels(root, names)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
