#!/usr/bin/env python3
"""slowest_tests: the tests that took longest, of all stages.

Usage: tools/slowest_tests.py RESULTS STAGE…, as count_tests.py. Stages without JUnit files are left
out.
"""

import pathlib
import sys
import xml.etree.ElementTree as xml

import count_tests

COUNT = 12


def times_of(results, stage):
    """Pairs of seconds and "STAGE: NAME"."""
    for path in count_tests.files_of(results, stage):
        try:
            cases = list(xml.parse(path).getroot().iter("testcase"))
        except xml.ParseError:
            continue
        for case in cases:
            yield float(case.get("time") or 0), f"{stage}: {case.get('name')}"


def main(arguments):
    results = pathlib.Path(arguments[0])
    times = sorted((t for stage in arguments[1:] for t in times_of(results, stage)), reverse=True)
    if times:
        print(f"slowest of {len(times)} tests, which took {sum(t for t, _ in times):.0f} s in all:")
    for seconds, name in times[:COUNT]:
        print(f"{seconds:8.1f} s  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
