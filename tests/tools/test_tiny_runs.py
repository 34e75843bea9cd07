"""docs/internals/tiny-runs.md: each row of `make bench-papers` and `make bench-doors` has a test
that runs it with hardly any data, and that test is there."""

import importlib.util
import itertools
import pathlib
import re
import sys
import unittest

from papers_lines import EXPERIMENTS, ROOT  # first: the paths

sys.path[:0] = [str(ROOT / "bench" / "doors"), str(ROOT / "bench" / "tests" / "papers")]
from experiment import BENCH, BY_HAND, PMAP  # noqa: E402

PAGE = ROOT / "docs/internals/tiny-runs.md"
CASES = re.compile(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", re.MULTILINE)


def module_of(path):
    """Of names that two folders may have."""
    spec = importlib.util.spec_from_file_location(f"tiny_runs_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows_of_doors():
    rows = module_of(ROOT / "bench/doors/rows.py")
    return ["start", *(row.name for row in [*rows.ROWS, *rows.ROWS_TO_NAME])]


def expanded(name):
    """a-{b,c} as bash has it."""
    parts = re.split(r"\{([^}]*)\}", name)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(words) for words in itertools.product(*choices)]


def tests_by_row(text):
    """Of each row in the tables of the page its tests: a list for each line that has it."""
    found = {}
    for line in re.findall(r"^\| (`.*?) \| (`.*?) \|", text, re.MULTILINE):
        names, tests = (re.findall(r"`([^`]+)`", cell) for cell in line)
        for row in itertools.chain.from_iterable(map(expanded, names)):
            found.setdefault(row, []).append(tests)
    return found


def problems(rows, found, is_test):
    """In words: rows without a line, or with several, lines without a row, tests that are none."""
    told = [f"{row} has no tiny run" for row in rows if row not in found]
    told += [f"{row} is no row" for row in found if row not in rows]
    told += [f"{row} has several lines" for row, tests in found.items() if len(tests) > 1]
    told += [f"{row}: {test} is no test" for row, lists in found.items()
             for test in itertools.chain.from_iterable(lists) if not is_test(test)]
    return told


class Tests:
    """Those there are, by the names that the page has for them."""

    def __init__(self):
        self._cases = {f"{suite}.{case}" for path in ROOT.glob("*/tests/**/*_test.cc")
                       for suite, case in CASES.findall(path.read_text(encoding="utf-8"))}
        self._folders = {"papers": ("bench/tests/papers", ".py"),
                         "programs": ("run/tests/programs", ".sh"),
                         "python": ("python/tests", ".py")}

    def has(self, name):
        group, _, test = name.partition(".")
        if group in self._folders:
            folder, suffix = self._folders[group]
            return (ROOT / folder / f"{test}{suffix}").is_file()
        return name in self._cases


class Page(unittest.TestCase):
    def test_every_row_has_a_test_that_is_there(self):
        rows = [*(one.name for one in EXPERIMENTS), *rows_of_doors()]
        self.assertEqual(len(rows), len(set(rows)))
        found = tests_by_row(PAGE.read_text(encoding="utf-8"))
        self.assertEqual(problems(rows, found, Tests().has), [])

    def test_rows_of_a_paper_are_where_its_rows_are_run(self):
        found = tests_by_row(PAGE.read_text(encoding="utf-8"))
        for one in EXPERIMENTS:
            if one.by in (BENCH, BY_HAND) and one.shows != "figures" or one.paper == PMAP:
                name = one.paper.lower().replace("-", "_")
                self.assertIn(f"papers.test_rows_of_{name}", found[one.name][0], one.name)

    def test_make_test_runs_these_tests(self):
        script = (ROOT / "tools/test.sh").read_text(encoding="utf-8")
        (labels,) = re.findall(r"^without_sanitizers='\^\((.*)", script, re.MULTILINE)
        self.assertLessEqual({"papers", "occ", "cli", "rbd", "tools"}, set(labels.split("|")))

    def test_what_is_wrong_is_told(self):
        page = ("| rows | tiny run | |\n| `a-{b,c}`, `d` | `papers.x`, `S.C` | |\n"
                "| `d` | `programs.y` | |\n| `gone` | `S.C` | |\n")
        told = problems(["a-b", "a-c", "d", "new"], tests_by_row(page), ("papers.x", "S.C").count)
        self.assertEqual(
            told, ["new has no tiny run", "gone is no row", "d has several lines",
             "d: programs.y is no test"])


class Ycsb(unittest.TestCase):
    def test_the_tiny_runs_have_all_mixes_on_all_databases(self):
        """programs.ycsb names them itself."""
        script = (ROOT / "run/tests/programs/ycsb.sh").read_text(encoding="utf-8")
        rows = module_of(ROOT / "bench/doors/rows.py")
        self.assertIn(f"for database in {' '.join(rows.YCSB_DATABASES)}; do", script)
        self.assertIn(f"for mix in {' '.join(rows.MIXES)}; do", script)


if __name__ == "__main__":
    unittest.main()
