"""outcore explain: sentences about a program that runs."""

import json
import os
import shutil
import subprocess
import unittest

import programs


class Explain(programs.SightTest):
    def explain(self, *words, status=0):
        return self.run_outcore("explain", *words, status=status).stdout.decode()

    def test_a_running_program_has_a_headline_and_sentences(self):
        program = self.start_scan()
        lines = self.explain(program.pid).splitlines()
        self.assertIn(f"({program.pid})", lines[0])
        self.assertIn("scan", lines[0])
        self.assertIn("waiting for pages", lines[1])
        text = "\n".join(lines)
        self.assertRegex(text, r"(?m)^It has run for .* with 1 store mapped; ")
        self.assertIn("of its budget of 4 MiB are in use", text)
        self.assertRegex(text, r"(?m)^.* touches found their page absent, ")
        self.assertIn(f"{self.shared}/data (8 MiB)", text)
        self.assertRegex(text, r"(?m)^[0-9.]+ % of the pages that came in had been in memory ")
        for line in lines[2:]:
            self.assertTrue(line.startswith("Try: ") or line.endswith("."), line)

    def test_json_has_the_figures_that_the_sentences_are_made_of(self):
        program = self.start_scan()
        runtime, = json.loads(self.explain(program.pid, "--json"))["runtimes"]
        self.assertEqual(runtime["pid"], program.pid)
        counters = runtime["metrics"]["counters"]
        self.assertGreater(counters["faults"], 1000)
        self.assertGreaterEqual(counters["fills"] + counters["prefetch_fills"], 2048)
        self.assertEqual(runtime["metrics"]["gauges"]["budget_bytes"], 4 << 20)
        self.assertIn(runtime["limit"], ("nothing", "budget", "write-back", "device", "fault cost"))
        self.assertEqual(len(runtime["metrics"]["regions"]), 1)
        self.touch_again(program)
        later, = json.loads(self.explain(program.pid, "--json"))["runtimes"]
        self.assertGreater(later["metrics"]["counters"]["faults"], counters["faults"])

    def test_a_program_is_found_by_its_name(self):
        named = self.folder / "scan-by-name"
        shutil.copy(self.shared / "scan", named)
        program = self.start_scan(scan=named)
        self.assertIn(f"({program.pid})", self.explain("scan-by-name").splitlines()[0])

    def test_a_program_that_rests_waits_for_nothing_now(self):
        program = self.start_scan()
        lines = self.explain(program.pid).splitlines()
        self.assertEqual(lines[3], "In the last second: Nothing had to be brought in: no page was "
                                   "touched that was not in memory.")
        last = json.loads(self.explain(program.pid, "--json"))["runtimes"][0]["last"]
        self.assertEqual((last["stalled"], last["limit"]), (0, "nothing"))

    def test_what_to_try_is_the_command_of_the_run(self):
        program = self.start_scan()
        self.keep_touching(program)
        runtime, = json.loads(self.explain(program.pid, "--json"))["runtimes"]
        self.assertTrue(runtime["next"], runtime)
        for next_ in runtime["next"]:
            self.assertIn("run --min-size 4k --budget ", next_)
            self.assertIn("-- " + str(self.shared / "scan"), next_)

    def test_a_file_that_stays_with_the_kernel_is_named_with_the_reason(self):
        data = self.folder / "data"
        shutil.copy(self.shared / "data", data)
        with open(data, "r+b"):
            program = self.start_scan(file=data)
            reason = rf"left to the kernel: .*\({os.getpid()}\) has it open for writing"
            self.assertRegex(self.explain(program.pid), reason)
            words = ("top", "--once", "--interval", "50ms", "--pid", program.pid)
            self.assertRegex(self.run_outcore(*words).stdout.decode(), reason)
            self.assertNotIn("STALLED", self.run_outcore(*words[:4]).stdout.decode())
            seen = json.loads(self.run_outcore(*words, "--json").stdout)
        left, = seen["processes"][0]["runtimes"][0]["left_to_kernel"]
        self.assertEqual(left["path"], str(data))

    def test_a_file_that_was_handed_back_is_named_with_the_reason(self):
        data = self.folder / "data"
        shutil.copy(self.shared / "data", data)
        program = self.start_scan(file=data)
        with open(data, "r+b"):
            self.assertRegex(self.explain(program.pid), "data .* was handed back to the kernel: ")
        for verb in ("residency", "warm"):
            said = self.run_outcore(verb, data, status=1).stderr.decode()
            self.assertIn(f"(pid {program.pid}): handed back to the kernel: ", said)
            self.assertNotIn("start the program", said)

    def test_a_stopped_program_is_explained_as_well(self):
        program = self.start_scan()
        os.kill(program.pid, 19)
        self.assertTrue(os.WIFSTOPPED(os.waitpid(program.pid, os.WUNTRACED)[1]))
        self.assertIn("touches found their page absent", self.explain(program.pid))
        os.kill(program.pid, 18)

    def test_the_name_of_a_file_is_part_of_a_line(self):
        odd = self.folder / "a\nb\x1b[31m%s"
        os.link(self.shared / "data", odd)
        usual = self.explain(self.start_scan().pid)
        text = self.explain(self.start_scan(file=odd).pid)
        self.assertNotIn("\x1b", text)
        self.assertFalse([line for line in text.splitlines() if line.startswith("b")], text)
        self.assertLessEqual(abs(text.count("\n") - usual.count("\n")), 2)

    def test_who_cannot_be_explained_is_told_in_one_line(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        for process, status, why in (
                (gone.pid, 1, "no such process"), (0, 2, "not the number of a process"),
                (os.getpid(), 1, "no runtime of Outcore"), (2**31 - 1, 1, "no such process"),
                (2**63, 2, "not the number of a process"), ("x", 1, "find process 'x'"),
                (-1, 1, "find process '-1'")):
            done = self.run_outcore("explain", process, status=status)
            self.assertIn(why, done.stderr.decode())

    def test_a_program_that_has_ended_is_no_process(self):
        program = self.start_scan()
        self.end(program)
        self.assertEqual(program.returncode, 0)
        self.explain(program.pid, status=1)


if __name__ == "__main__":
    unittest.main()
