#!/usr/bin/env python3
"""check_report: whether a program's data went through Outcore, by the reports of `outcore run`.

Usage: check_report.py REPORT BUDGET GLOB… | --allocations

Every file REPORT* may hold several documents: each process of a program writes its own. For each
GLOB a file with a matching path was taken and had fills or writes; together these files are at
least three times the budget; no process had more than the budget resident.
"""

import fnmatch
import glob
import json
import sys

SUFFIXES = {"K": 2**10, "M": 2**20, "G": 2**30}
TIMES_THE_BUDGET = 3


def parse_bytes(text):
    return int(text[:-1]) * SUFFIXES[text[-1]] if text[-1] in SUFFIXES else int(text)


def read_documents(path):
    with open(path, encoding="utf-8") as file:
        text = file.read().strip()
    decoder, documents = json.JSONDecoder(), []
    while text:
        document, end = decoder.raw_decode(text)
        documents.append(document)
        text = text[end:].lstrip()
    return documents


def was_used(entry):
    return entry["fills"] > 0 or entry["written_bytes"] > 0


def is_allocation(entry):
    return not entry["path"].startswith("/")


def why_not_taken(documents, pattern):
    reasons = {
        f"{entry['path']} was left to the kernel: {entry['reason']}"
        for document in documents
        for entry in document["not_taken"]
        if fnmatch.fnmatchcase(entry["path"], pattern)
    }
    return "; ".join(sorted(reasons)) or "no process mapped it, or its pages were never touched"


def check_budget(documents, budget_bytes):
    problems = []
    for document in documents:
        peak, limit = document["peak_bytes"], document["budget_bytes"]
        if limit > budget_bytes:
            problems.append(f"the budget was {limit} bytes in place of {budget_bytes}")
        if peak > limit:
            problems.append(f"{peak} bytes were resident at once, more than the budget of {limit}")
    return problems


def check_taken(documents, budget_bytes, patterns):
    problems, taken = [], {}
    used = [e for document in documents for e in document["files"] if was_used(e)]
    for pattern in patterns:
        matching = [e for e in used if fnmatch.fnmatchcase(e["path"], pattern)]
        taken.update((e["path"], max(e["file_bytes"], taken.get(e["path"], 0))) for e in matching)
        if not matching:
            problems.append(f"{pattern}: {why_not_taken(documents, pattern)}")
    return problems or check_size(sum(taken.values()), budget_bytes)


def check_size(data_bytes, budget_bytes):
    if data_bytes >= TIMES_THE_BUDGET * budget_bytes:
        return []
    return [f"{data_bytes} bytes are too little for a budget of {budget_bytes}"]


def check_allocations(documents, budget_bytes):
    entries = [e for document in documents for e in document["files"] if is_allocation(e)]
    if not any(map(was_used, entries)):
        return ["no allocation went through Outcore"]
    return check_size(sum(e["file_bytes"] for e in entries), budget_bytes)


def main(arguments):
    if len(arguments) < 3:
        print("usage: check_report.py REPORT BUDGET GLOB… | --allocations", file=sys.stderr)
        return 2
    report, budget_bytes, patterns = arguments[0], parse_bytes(arguments[1]), arguments[2:]
    documents = [d for path in sorted(glob.glob(glob.escape(report) + "*"))
                 for d in read_documents(path)]
    if not documents:
        print(f"check_report: no process wrote {report}: it mapped nothing, or did not end")
        return 1
    problems = check_budget(documents, budget_bytes)
    if patterns == ["--allocations"]:
        problems += check_allocations(documents, budget_bytes)
    else:
        problems += check_taken(documents, budget_bytes, patterns)
    for problem in problems:
        print(f"check_report: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
