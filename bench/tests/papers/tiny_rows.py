"""tiny_rows: rows of `make bench-papers` with hardly any data, run as the table runs them.

A run that was wrong has failed: `outcore bench` verifies each. A row that is added to the table is
run here, too.
"""

import os
import pathlib
import sys
import tempfile
import types

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "bench" / "papers"), str(ROOT / "bench")]
import table  # noqa: E402
from bench_command import Failed  # noqa: E402
from engines import Engines  # noqa: E402
from experiment import BENCH, BY_HAND, CEPH, GENOMES, is_ours  # noqa: E402
from experiments import EXPERIMENTS  # noqa: E402
from tiny import points_of, tiny  # noqa: E402
from verdict import columns_of  # noqa: E402

BUILD = pathlib.Path(os.environ.get("OUTCORE_TEST_BUILD_DIR", ROOT / "build"))
# What a machine may lack, with the words by which the command says so.
LACKING = {"swap": "switch on swap", "direct": "with O_DIRECT"}
# A matrix that is larger than the least budget of processes takes seconds; of the tree, profiles
# have less memory than data, and tell no more than what is chosen.
ALWAYS_FIT = ("matmul-order", "tree")


def rows_of(paper):
    """Those that `outcore bench` runs, with data that it makes, and whose runs have an answer."""
    return [one for one in EXPERIMENTS if one.by in (BENCH, BY_HAND) and one.paper == paper
            and GENOMES not in one.options and one.shows != "figures"]


def work_of(one, point):
    """A workload and the options that it has, without their values."""
    workload, words = table.workload_of(one, (*one.options.split(), *point.options))
    return workload, *sorted(word for word in words if word.startswith("--"))


class TinyRows:
    """Of a TestCase of one paper's rows."""

    paper = ""

    def setUp(self):
        # Not where a file system is in memory, which has no O_DIRECT.
        folder = self.enterContext(tempfile.TemporaryDirectory(dir="/var/tmp"))
        self.engines = self.enterContext(Engines())
        self.options = types.SimpleNamespace(folder=folder, disk=folder, programs=None,
                                             outcore=str(BUILD / "bin" / "outcore"))
        self._compared = set()  # of works and columns

    def test_each_row_has_right_answers_in_each_memory(self):
        self.assertTrue(rows_of(self.paper))
        for one in rows_of(self.paper):
            self.check_row(one)

    def check_row(self, one):
        """Each point by Outcore; of each work the last one in everything beside it, too, unless a
        row before it had that."""
        points = [point for point in points_of(one) if CEPH not in point.options]
        last = {work_of(one, point): point for point in points}
        ours = []
        for point in points:
            work = work_of(one, point)
            others = columns_of(one)[1:] if last[work] is point else ()
            for column in ("outcore", *(c for c in others if (work, c) not in self._compared)):
                self._compared.add((work, column))
                with self.subTest(row=one.name, point=point.label, column=column):
                    lines = self._lines(one, point, column)
                    ours += lines if is_ours(column) else []
        if not ours or one.name in ALWAYS_FIT:
            return
        with self.subTest(row=one.name):
            self.assertTrue(any(line["fills"] * line["page_bytes"] > line["budget_bytes"]
                                for line in ours), "no run needs more memory than its budget")

    def _lines(self, one, point, column):
        try:
            run = table.run_by_hand if one.by == BY_HAND else table.run
            lines = run(self.options, self.engines, *tiny(one, point, column), column)
        except Failed as why:
            if column in LACKING and LACKING[column] in str(why):
                self.skipTest(str(why))
            raise
        self.assertTrue(lines)
        for line in lines:
            self.assertFalse(line["stopped"])
            self.assertIs(line["checked"], True)
        return lines
