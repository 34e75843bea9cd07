"""bench-papers --times: the same experiments with more data."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "papers"), str(ROOT / "bench")]
import kept_runs  # noqa: E402
import page  # noqa: E402
import published_runs  # noqa: E402
import table  # noqa: E402
from experiments import EXPERIMENTS  # noqa: E402
from larger import can_grow, larger  # noqa: E402


def experiment(name):
    return next(e for e in EXPERIMENTS if e.name == name)


def line(row, column, rate, times):
    return {"row": row, "point": "4", "column": column, "rate": rate, "unit": "words/s",
            "seconds": 1.0, "stopped": False, "device": "zram0", "times": times}


class Larger(unittest.TestCase):
    def test_bytes_and_counts_and_the_limit_grow_and_threads_do_not(self):
        one = larger(experiment("ycsb-heap"), 16)
        self.assertIn("--size 4096M --budget 1024M", one.options)
        self.assertIn("--touches 480000", one.options)
        self.assertEqual(one.points, experiment("ycsb-heap").points)
        self.assertEqual(one.limit_seconds, 16 * experiment("ycsb-heap").limit_seconds)

    def test_a_scale_is_an_exponent_and_a_share_stays(self):
        self.assertIn("--scale 20 --budget 32M", larger(experiment("bfs-semi"), 2).options)
        self.assertEqual(larger(experiment("himeno"), 4).points, experiment("himeno").points)

    def test_what_must_move_grows_with_the_data(self):
        self.assertEqual(larger(experiment("byte-writes"), 8).base_bytes, 8 * 8000 * 4096)

    def test_every_row_of_a_command_can_be_made_larger(self):
        for one in EXPERIMENTS:
            if can_grow(one):
                self.assertNotEqual(larger(one, 4), one, one.name)

    def test_once_the_data_is_the_row_itself(self):
        self.assertIs(larger(experiment("is-occ"), 1), experiment("is-occ"))


class Asked(unittest.TestCase):
    def wanted(self, times, rows=None):
        return table.wanted_of(types.SimpleNamespace(times=times, rows=rows))

    def test_of_all_rows_those_of_one_size_are_left_out(self):
        names = {e.name for e in self.wanted(4)}
        self.assertIn("sort", names)
        self.assertFalse({"is", "is-occ", "s3d-write", "kmers-kraken2", "kmers-real",
                          "bfs-sizes"} & names)

    def test_a_row_of_one_size_is_refused_by_name(self):
        with self.assertRaisesRegex(SystemExit, "^bench-papers: is: this row has one size"):
            self.wanted(2, ["sort", "is"])

    def test_only_powers_of_two_are_taken(self):
        for times in (0, -1, 3, 2048):
            with self.assertRaisesRegex(SystemExit, f"--times {times}: give a power of two"):
                self.wanted(times)


class Page(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.said = self.enterContext(contextlib.redirect_stderr(io.StringIO()))
        self.enterContext(contextlib.redirect_stdout(io.StringIO()))

    def draw(self, *runs):
        file = self.folder / "measured"
        file.write_text("".join(f"{json.dumps(run)}\n" for run in runs), encoding="utf-8")
        page.main([str(file), str(self.folder)])

    def kept(self):
        text = (self.folder / published_runs.NAME).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()][1:]

    def rates(self):
        return {(r["row"], r["column"]): r["rate"] for r in self.kept() if "row" in r}

    def test_larger_rows_have_a_page_of_their_own_and_leave_the_others(self):
        self.draw(line("sort", "outcore", 30.0, 8), line("sort", "mmap", 20.0, 8))
        self.assertEqual([p.name for p in self.folder.glob("*.md")], ["larger.md"])
        text = (self.folder / "larger.md").read_text(encoding="utf-8")
        self.assertIn("## Sort of more than memory, 8 times the data", text)
        self.assertIn("| 4 | 30 | 20 | 1.50 | 1.50 x mmap |", text)
        self.assertIn("`outcore bench sort --size 1024M", text)

    def test_of_a_row_that_is_measured_again_the_runs_are_replaced(self):
        self.draw(line("bfs", "outcore", 3.0, 1), line("sort", "outcore", 1.0, 1),
                  line("sort", "mmap", 2.0, 1), line("sort", "outcore", 9.0, 4))
        self.draw(line("sort", "outcore", 5.0, 1))
        self.assertEqual([(r["row"], r["column"], r["times"], r["rate"]) for r in self.kept()],
                         [("sort", "outcore", 4, 9.0), ("sort", "outcore", 1, 5.0),
                          ("bfs", "outcore", 1, 3.0)])

    def test_profiles_stay_where_a_row_is_measured_without(self):
        profile = {"profile": "sort", "point": "48", "column": "outcore", "by_kind": {}}
        self.draw(line("sort", "outcore", 1.0, 1), profile)
        self.draw(line("sort", "outcore", 2.0, 1))
        self.assertEqual([r.get("profile", r.get("rate")) for r in self.kept()], [2.0, "sort"])

    def test_runs_of_another_machine_go(self):
        self.draw(line("sort", "outcore", 1.0, 1))
        with mock.patch.object(kept_runs, "machine", lambda: "another"):
            self.draw(line("bfs", "outcore", 2.0, 1))
        self.assertEqual(self.rates(), {("bfs", "outcore"): 2.0})
        self.assertIn("measured on another machine", self.said.getvalue())

    def test_only_what_pages_are_drawn_from_is_kept(self):
        self.draw({**line("sort", "outcore", 1.0, 1), "read_bytes": 1, "cgroup": "x"},
                  {**line("lmat-faults", "outcore", 1.0, 1), "point": "for each read",
                   "read_bytes": 2, "cgroup": "x"})
        sort, faults = self.kept()
        self.assertEqual((sort.get("read_bytes"), faults["read_bytes"]), (None, 2))
        self.assertNotIn("cgroup", faults)

    def test_a_damaged_file_is_named_in_one_line_and_stays(self):
        path = self.folder / published_runs.NAME
        for damaged in ("", '{"machine": "m"}\n{"row": '):
            path.write_text(damaged, encoding="utf-8")
            with self.assertRaisesRegex(SystemExit, "^bench-papers: .*runs.json is damaged"):
                self.draw(line("sort", "outcore", 1.0, 1))
            self.assertEqual(path.read_text(encoding="utf-8"), damaged)

    def test_runs_of_two_sizes_are_no_median(self):
        runs = [line("sort", "outcore", 1.0, times) for times in (4, 8)]
        self.assertEqual(page.times_of(runs), "each run once")

    def test_rows_that_are_no_more_go(self):
        self.draw(line("sort", "outcore", 1.0, 1), line("no row", "outcore", 1.0, 1))
        self.assertEqual(list(self.rates()), [("sort", "outcore")])

    def test_runs_with_options_that_are_no_more_go(self):
        self.draw(line("sort", "outcore", 1.0, 1), line("bfs", "outcore", 2.0, 1),
                  line("sort", "outcore", 3.0, 2))
        text = (self.folder / published_runs.NAME).read_text(encoding="utf-8")
        self.assertEqual(text.count("--size 128M --budget 64M"), 1)
        (self.folder / published_runs.NAME).write_text(
            text.replace("--size 128M --budget 64M", "--size 64M"), encoding="utf-8")
        self.draw({**line("images", "outcore", 1.0, 1), "point": "5"})  # no such point, either
        self.assertEqual([(r["row"], r["times"]) for r in self.kept()], [("sort", 2), ("bfs", 1)])

    def test_a_page_is_drawn_of_all_points_or_stays(self):
        runs = [line("sort", "outcore", 1.0, 1)]
        page.draw_pages(runs, [], self.folder)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_what_the_runs_kept_here_say_is_on_the_pages_kept_here(self):
        with open(ROOT / "docs/papers" / published_runs.NAME, encoding="utf-8") as lines:
            runs = [run for run in map(json.loads, lines) if run.get("times") == 1]
        for name in {run["row"] for run in runs if "row" in run}:
            one = experiment(name)
            section = page.section_of(one, [run for run in runs if run.get("row") == name])
            text = (ROOT / f"docs/papers/{one.paper.lower()}.md").read_text(encoding="utf-8")
            for row in section.rows:
                self.assertIn(f"| {' | '.join(row)} |", text)


if __name__ == "__main__":
    unittest.main()
