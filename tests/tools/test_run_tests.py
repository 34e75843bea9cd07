"""run_tests: cases share a process, and no failure is lost by it."""

import contextlib
import io
import json
import os
import pathlib
import stat
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import run_tests  # noqa: E402

# Behaves as a program of Google Test whose cases are named by what they do.
PROGRAM = f"""#!{sys.executable}
import os, signal, sys, time
(cases,) = [a.split("=", 1)[1].split(":") for a in sys.argv if a.startswith("--gtest_filter=")]
print("started", len(cases), file=open(os.environ["STARTS"], "a"))
failed = False
for case in cases:
    print(f"[ RUN      ] {{case}}", flush=True)
    what = case.split(".")[1]
    end = {{"Fails": "FAILED  ", "Skips": " SKIPPED"}}.get(what, "     OK")
    if what == "Dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "DiesOfALateSignal":
        os.kill(os.getpid(), signal.SIGRTMIN + 3)
    if what == "EndsBadly":
        print(f"[       OK ] {{case}} (1 ms)", flush=True)
        os._exit(4)
    if what == "Hangs":
        time.sleep(1000)
    if what == "FailsAmongOthers":
        end = "FAILED  " if len(cases) > 1 else "     OK"
    failed = failed or "FAILED" in end
    print(f"said by {{what}}[ {{end}} ] {{case}} (12 ms)", flush=True)
if "S.LeavesADeadThread" in cases:
    sys.exit(3)
sys.exit(failed)
"""


class RunTests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.program = self.path / "test_program"
        self.program.write_text(PROGRAM, encoding="utf-8")
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        self.starts = self.path / "starts"
        os.environ["STARTS"] = str(self.starts)

    def tearDown(self):
        self.folder.cleanup()

    def run_cases(self, *names, timeout=60):
        tests = [run_tests.Test(
            {"name": name + "  # GetParam() = 1",
             "command": [str(self.program), f"--gtest_filter={name}"]}, timeout)
            for name in names]
        self.runner = run_tests.Runner(2)
        with contextlib.redirect_stdout(io.StringIO()):
            self.runner.run(run_tests.in_shards(tests, {}))
        self.tests = {t.name: t for t in tests}
        return [t.outcome for t in tests]

    def processes(self):
        return len(self.starts.read_text(encoding="utf-8").splitlines())

    def test_cases_share_a_process(self):
        self.assertEqual(self.run_cases("S.A", "S.B", "S.Skips"), ["passed", "passed", "skipped"])
        self.assertEqual(self.processes(), 1)
        self.assertAlmostEqual(self.tests["S.A"].seconds, 0.012)

    def test_a_death_is_of_the_case_that_ran_and_the_others_go_on(self):
        self.assertEqual(self.run_cases("S.A", "S.Dies", "S.B"), ["passed", "failed", "passed"])
        self.assertIn("signal 11", self.tests["S.Dies"].output)
        self.assertEqual(self.run_cases("S.DiesOfALateSignal", "S.B"), ["failed", "passed"])

    def test_a_case_that_hangs_is_killed(self):
        self.assertEqual(self.run_cases("S.Hangs", "S.B", timeout=1), ["failed", "passed"])
        self.assertIn("took longer", self.tests["S.Hangs"].output)

    def test_what_fails_among_others_stays_failed_and_is_tried_alone(self):
        self.assertEqual(self.run_cases("S.A", "S.FailsAmongOthers"), ["passed", "failed"])
        self.assertIn("alone it passed", self.tests["S.FailsAmongOthers"].output)
        self.assertEqual(self.run_cases("S.A", "S.Fails"), ["passed", "failed"])
        self.assertIn("alone it failed", self.tests["S.Fails"].output)

    def test_a_process_that_fails_behind_its_last_case_is_a_failure(self):
        self.assertEqual(self.run_cases("S.A", "S.LeavesADeadThread"), ["passed", "passed"])
        self.assertEqual([t.outcome for t in self.runner.extra], ["failed"])
        self.assertIn("exit status 3", self.runner.extra[0].output)

    def test_a_process_that_dies_between_cases_is_a_failure(self):
        self.assertEqual(self.run_cases("S.A", "S.EndsBadly", "S.B"), ["passed"] * 3)
        self.assertEqual([t.outcome for t in self.runner.extra], ["failed"])
        self.assertIn("exit status 4", self.runner.extra[0].output)

    def test_a_process_that_cannot_be_is_a_failure_of_all_its_cases(self):
        self.program.unlink()
        self.assertEqual(self.run_cases("S.A", "S.B"), ["failed", "failed"])

    def test_a_program_that_cannot_start_fails_each_case(self):
        self.program.write_text(f"#!{sys.executable}\nraise SystemExit('no library')\n",
                                encoding="utf-8")
        self.assertEqual(self.run_cases("S.A", "S.B"), ["failed", "failed"])
        self.assertIn("no library", self.tests["S.B"].output)

    def test_other_programs_end_by_their_exit_status(self):
        def run(command, **properties):
            test = run_tests.Test({"name": "t", "command": ["sh", "-c", command], "properties": [
                {"name": name, "value": value} for name, value in properties.items()]}, 60)
            with contextlib.redirect_stdout(io.StringIO()):
                run_tests.Runner(1).run([[test]])
            return test.outcome
        self.assertEqual(run("exit 0"), "passed")
        self.assertEqual(run("exit 1"), "failed")
        self.assertEqual(run("exit 77", SKIP_RETURN_CODE=77), "skipped")
        self.assertEqual(run("exit 77"), "failed")
        self.assertEqual(run("sleep 1000", TIMEOUT=1), "failed")
        self.assertEqual(run('test "$A" = "b c"', ENVIRONMENT=["A=b c"]), "passed")

    def test_shards_hold_cases_of_one_program_and_not_those_that_are_to_be_alone(self):
        def test(name, program, labels=()):
            return run_tests.Test({"name": name, "command": [program, f"--gtest_filter={name}"],
                                   "properties": [{"name": "LABELS", "value": list(labels)}]}, 60)
        tests = [test(f"A.{i}", "a") for i in range(run_tests.CASES_MAX + 1)]
        tests += [test("B.1", "b"), test("B.2", "b", ["alone"])]
        sizes = sorted(len(s) for s in run_tests.in_shards(tests, {"B.1": 9}))
        self.assertEqual(sizes, [1, 1, 1, run_tests.CASES_MAX])
        first = run_tests.in_shards(tests, {"B.1": 9})[0]
        self.assertEqual([t.name for t in first], ["B.1"])

    def test_the_report_names_outcomes_for_the_sum(self):
        self.run_cases("S.A", "S.Fails", "S.Skips")
        report = self.path / "r.xml"
        run_tests.write_junit(report, list(self.tests.values()))
        cases = {c.get("name"): c for c in xml.parse(report).getroot().iter("testcase")}
        self.assertEqual({n: c.get("status") for n, c in cases.items()},
                         {"S.A": "run", "S.Fails": "fail", "S.Skips": "notrun"})
        self.assertIn("said by Fails", cases["S.Fails"].findtext("system-out"))

    def test_what_is_not_built_is_chosen_by_the_name_of_its_folder(self):
        test = run_tests.Test({"name": "test_pool_NOT_BUILT"}, 60)
        options = run_tests.parse(["build", "--junit", "x", "--label", "^pool$"])
        self.assertTrue(run_tests.is_chosen(test, options))
        options = run_tests.parse(["build", "--junit", "x", "--label", "^sim$"])
        self.assertFalse(run_tests.is_chosen(test, options))
        self.assertEqual(test.command, [])

    def test_times_that_are_damaged_are_not_known(self):
        path = self.path / "times.json"
        self.assertEqual(run_tests.read_times(path), {})
        path.write_text("{", encoding="utf-8")
        self.assertEqual(run_tests.read_times(path), {})
        path.write_text(json.dumps({"a": 1.5}), encoding="utf-8")
        self.assertEqual(run_tests.read_times(path), {"a": 1.5})


if __name__ == "__main__":
    unittest.main()
