"""What limits a run, by its record, and what is said to try next."""

import json
import unittest

from records import RecordTest, record


class Limits(RecordTest):
    def test_the_budget_limits_where_the_next_command_has_a_larger_one(self):
        for refaults, limit, option in ((290, "device", "--learn"), (310, "budget", "--budget")):
            counters = dict(record()["counters"], refaults=refaults)
            path = self.write(record(counters=counters))
            verdict = json.loads(self.run_outcore("report", path, "--json").stdout)["verdict"]
            self.assertEqual(verdict["limit"], limit)
            self.assertIn(f"outcore run {option} ", verdict["next"][0])

    def test_the_limit_of_a_buffer_is_told_as_that_of_all_its_processes(self):
        typed = ["outcore run", "--budget 4M", "--buffer samples", "-- ./scan"]
        program = {"command": "scan", "pid": 7, "seconds": 1.0, "run_command": typed}
        for name, is_told in (("samples", True), ("run-7-1", False)):
            buffer = {"name": name, "limit_bytes": 4 << 20, "used_bytes": 0, "used_bytes_max": 0}
            path = self.write(record(program=program, buffer=buffer))
            verdict = json.loads(self.run_outcore("report", path, "--json").stdout)["verdict"]
            self.assertEqual(verdict["next"],
                             ["outcore run --budget 8M --buffer samples -- ./scan"])
            sentences = "\n".join(verdict["sentences"])
            self.assertEqual("for all its processes: the budget of the one that comes first. While "
                             "it lasts, outcore buffers resize samples 8M changes it." in sentences,
                             is_told, sentences)


if __name__ == "__main__":
    unittest.main()
