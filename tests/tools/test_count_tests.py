"""count_tests: every test counts once, and no failure is lost."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import count_tests  # noqa: E402

JUNIT = """<testsuite tests="4">
<testcase name="a" status="run"/><testcase name="b" status="run"/>
<testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
{}</testsuite>"""
FAILED = """<testcase name="d" status="fail"><failure message=""/>
<system-out>began
expected 1, was 2</system-out></testcase>"""


class CountTests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.results = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def stage(self, verdict, junit=None):
        (self.results / "s.status").write_text(verdict + "\n", encoding="utf-8")
        if junit is not None:
            (self.results / "s.xml").write_text(junit, encoding="utf-8")
        return count_tests.count_stage(self.results, "s")

    def test_tests_are_summed_by_outcome(self):
        self.assertEqual(self.stage("failed", JUNIT.format(FAILED)), [2, 1, 1])

    def test_a_stage_without_tests_counts_as_one(self):
        self.assertEqual(self.stage("passed"), [1, 0, 0])
        self.assertEqual(self.stage("skipped: needs root"), [0, 0, 1])

    def test_a_failed_build_is_a_failure_though_no_test_failed(self):
        self.assertEqual(self.stage("failed"), [0, 1, 0])
        self.assertEqual(self.stage("failed", JUNIT.format("")), [2, 1, 1])

    def test_a_stage_that_failed_without_a_failed_test_is_named(self):
        self.stage("failed", JUNIT.format(""))
        self.assertIn("failed: s: ", count_tests.failures_of(self.results, "s")[0])
        self.stage("failed", JUNIT.format(FAILED))
        self.assertTrue(count_tests.failures_of(self.results, "s")[0].startswith("failed: s: d"))
        self.stage("passed", JUNIT.format(""))
        self.assertEqual(count_tests.failures_of(self.results, "s"), [])

    def test_a_stage_that_never_ended_is_a_failure(self):
        self.assertEqual(count_tests.count_stage(self.results, "never"), [0, 1, 0])
        self.assertEqual(self.stage("failed", "<testsuite"), [0, 1, 0])

    def test_failed_tests_are_named_with_their_last_words(self):
        self.stage("failed", JUNIT.format(FAILED))
        self.assertEqual(
            count_tests.failures_of(self.results, "s"),
            ["failed: s: d", "    began", "    expected 1, was 2"],
        )

    def test_several_files_of_a_stage_are_one(self):
        (self.results / "s-6.1.xml").write_text(JUNIT.format(""), encoding="utf-8")
        self.assertEqual(self.stage("passed", JUNIT.format("")), [4, 0, 2])


if __name__ == "__main__":
    unittest.main()
