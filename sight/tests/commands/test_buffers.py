"""What is told of programs that share a buffer: its limit, and what came back into it."""

import json
import subprocess
import unittest

import programs
import test_export
import test_report

LIMIT = 4 << 20


class Buffers(programs.SightTest, test_export.Format):
    def test_the_limit_of_its_buffer_is_a_members_budget(self):
        program = self.start_scan(buffer="samples")
        text = self.run_outcore("explain", program.pid).stdout.decode()
        self.assertRegex(text, r"(?m)^It has run for .* of the 4 MiB of the buffer samples are in "
                               r"use, which 1 process has\.$")
        self.assertRegex(text, r"(?m)^[0-9.]+ % of the pages that came in had been in memory "
                               r"before and had to leave, with a buffer of 4 MiB \(samples\) ")
        self.assertNotIn("large enough", text)
        self.keep_touching(program)
        shown = self.run_outcore("explain", program.pid, "--json").stdout
        runtime, = json.loads(shown)["runtimes"]
        self.assertEqual(runtime["buffer"]["limit_bytes"], LIMIT)
        self.assertGreater(runtime["metrics"]["counters"]["refaults"], 0)
        self.assertEqual(runtime["next"], ["outcore buffers resize samples 8M"])
        shown = self.run_outcore("top", "--json", "--pid", program.pid).stdout
        process, = json.loads(shown)["processes"]
        self.assertEqual(process["budget_bytes"], LIMIT)
        self.assertGreater(process["amplification"], 1)

    def test_a_program_of_a_shell_reads_again_what_its_buffer_let_go(self):
        words = [programs.OUTCORE, "run", "-q", "--min-size", "4k", "--budget", "4M", "--report",
                 "x.html", "--", "sh", "-c", f"{self.shared}/scan {self.shared}/data; true"]
        done = subprocess.run(words, cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=programs.WAIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.folder / "x.html").read_text()
        run, = [run for run in test_report.runs_in(page) if run["files"]]
        file, = run["files"]
        self.assertEqual((file["frames"], run["buffer"]["limit_bytes"]), ("buffer", LIMIT))
        counters = run["counters"]
        self.assertGreater(counters["refaults"], 0)
        came = counters["fills"] + counters["prefetch_fills"]
        self.assertEqual(file["touched_bytes"], (came - counters["refaults"]) * 4096)
        self.assertLessEqual(file["touched_bytes"], 8 << 20)
        self.assertEqual(run["miss_curve"]["points"], [])
        sentences = "\n".join(run["verdict"]["sentences"])
        self.assertNotIn("large enough", sentences)
        self.assertIn("with a buffer of 4 MiB", sentences)

    def test_export_has_a_buffers_pages_and_its_processes(self):
        program = self.start_scan(buffer="samples")
        alone = self.start_scan()
        for words in ((), ("--pid", program.pid)):
            samples = self.read(self.run_outcore("export", *words).stdout.decode())
            of_buffer = {name.removeprefix("outcore_buffer_"): value
                         for (name, labels), value in samples.items()
                         if dict(labels).get("buffer") == "samples"}
            self.assertEqual(of_buffer["limit_bytes"], LIMIT)
            self.assertGreater(of_buffer["resident_bytes"], LIMIT / 2)
            self.assertLessEqual(of_buffer["resident_bytes"], of_buffer["used_bytes"])
            self.assertLessEqual(of_buffer["used_bytes"], LIMIT)
            self.assertEqual((of_buffer["processes"], of_buffer["files"]), (1, 1))
            self.assertEqual(of_buffer["written_bytes"], 0)
            self.assertEqual(test_export.total(samples, "outcore_buffer_member",
                                               pid=str(program.pid), buffer="samples"), 1)
        samples = self.read(self.run_outcore("export", "--pid", alone.pid).stdout.decode())
        self.assertFalse([name for name, _ in samples if name.startswith("outcore_buffer_")])


if __name__ == "__main__":
    unittest.main()
