"""outcore explain: sentences about a program that runs."""

import json
import os
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
                (gone.pid, 1, "no such process"), (0, 1, "no such process"),
                (os.getpid(), 1, "no runtime of Outcore"), (2**31 - 1, 1, "no such process"),
                (2**63, 1, "no such process"), ("x", 2, "x"), (-1, 2, "-1")):
            done = self.run_outcore("explain", process, status=status)
            self.assertIn(why, done.stderr.decode())

    def test_a_program_that_has_ended_is_no_process(self):
        program = self.start_scan()
        self.end(program)
        self.assertEqual(program.returncode, 0)
        self.explain(program.pid, status=1)


if __name__ == "__main__":
    unittest.main()
