#!/usr/bin/env python3
"""count_tests: the failed tests of all stages, and one line: "N passed, N failed, N skipped".

Usage: tools/count_tests.py RESULTS STAGE…, where RESULTS holds STAGE.status and, of stages that
run ctest, STAGE.xml or STAGE-*.xml (JUnit). A stage without tests of its own counts as one; so does
a stage that failed without a failed test (its build, say). Exit status 1 if any failed.
"""

import itertools
import pathlib
import sys
import xml.etree.ElementTree as xml

OUTCOMES = ("passed", "failed", "skipped")
LAST_LINES = 12


def is_failure(case):
    return case.get("status") == "fail" or case.find("failure") is not None


def files_of(results, stage):
    return sorted(results.glob(f"{stage}.xml")) + sorted(results.glob(f"{stage}-*.xml"))


def verdict_of(results, stage):
    status = results / f"{stage}.status"
    text = status.read_text(encoding="utf-8") if status.exists() else "failed"
    return text.split(":")[0].strip()


def has_failed_without_a_test(results, stage):
    try:
        named = sum(count_file(path)[1] for path in files_of(results, stage))
    except xml.ParseError:
        return False
    return verdict_of(results, stage) == "failed" and named == 0


def failures_of(results, stage):
    """Lines that name each failed test, with its last words."""
    lines = []
    if has_failed_without_a_test(results, stage):
        lines.append(f"failed: {stage}: a step without a name; its output says which")
    for path in files_of(results, stage):
        try:
            cases = list(xml.parse(path).getroot().iter("testcase"))
        except xml.ParseError:
            lines.append(f"failed: {stage}: {path.name} was not written to its end")
            continue
        for case in filter(is_failure, cases):
            lines.append(f"failed: {stage}: {case.get('name')}")
            said = (case.findtext("system-out") or "").strip().splitlines()
            lines += ["    " + line[:300] for line in said[-LAST_LINES:]]
    return lines


def count_file(path):
    """[passed, failed, skipped] of one JUnit file."""
    counts = [0, 0, 0]
    for case in xml.parse(path).getroot().iter("testcase"):
        is_failed = is_failure(case)
        is_skipped = case.find("skipped") is not None or case.get("status") == "notrun"
        counts[1 if is_failed else 2 if is_skipped else 0] += 1
    return counts


def count_stage(results, stage):
    counts = [0, 0, 0]
    for path in files_of(results, stage):
        try:
            counts = [a + b for a, b in zip(counts, count_file(path))]
        except xml.ParseError:
            counts[1] += 1
    if sum(counts) == 0 or has_failed_without_a_test(results, stage):
        counts[OUTCOMES.index(verdict_of(results, stage))] += 1
    return counts


def main(arguments):
    if len(arguments) < 2:
        print("usage: count_tests.py RESULTS STAGE…", file=sys.stderr)
        return 2
    results = pathlib.Path(arguments[0])
    for line in itertools.chain(*(failures_of(results, s) for s in arguments[1:])):
        print(line)
    sums = [sum(column) for column in zip(*(count_stage(results, s) for s in arguments[1:]))]
    print(", ".join(f"{n} {outcome}" for n, outcome in zip(sums, OUTCOMES)))
    return 1 if sums[1] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
