"""bench-papers: what its experiments ask is what they say, and each has its place on a page."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

from papers_lines import (EXPERIMENTS, ROOT, behind_of, experiment, figure,  # first: the paths
                          line, runs_of)

import page
import sections
import table
import verdict


class Asked(unittest.TestCase):
    def test_a_rate_is_beside_the_best_rival(self):
        one = experiment("sort")
        runs = [line("sort", "48", "outcore", rate=115.0), line("sort", "48", "mmap", rate=90.0),
                line("sort", "48", "mmap-random", rate=100.0)]
        (found,) = verdict.judge_rates(one, runs)
        self.assertEqual((found.rival, found.ratio, found.is_met), ("mmap-random", 1.15, True))
        runs[0]["rate"] = 114.0
        self.assertFalse(verdict.judge_rates(one, runs)[0].is_met)

    def test_plain_memory_that_is_not_named_first_is_no_rival(self):
        runs = [line("bfs-semi", "1", "outcore", rate=110.0),
                line("bfs-semi", "1", "mmap-dontneed", rate=100.0),
                line("bfs-semi", "1", "dram", rate=1000.0)]
        found = verdict.judge_rates(experiment("bfs-semi"), runs)[0]
        self.assertEqual((found.rival, found.ratio, found.is_met), ("mmap-dontneed", 1.1, True))

    def test_another_setting_of_ours_and_direct_are_no_rivals(self):
        one = experiment("half-memory")
        rates = {"outcore": 81.0, "outcore, hot 75 %": 500.0, "mmap": 27.0}
        runs = [line(one.name, "12", column, rate=rate) for column, rate in rates.items()]
        runs.append(line(one.name, "24", "outcore", rate=100.0))
        _, half = verdict.judge_rates(one, runs)
        self.assertEqual((half.rival, half.ratio, half.over, half.is_met),
                         ("mmap", 3.0, 0.81, True))
        runs = [line("lriot-writes", "4", column, rate=rate)
                for column, rate in (("outcore", 2.0), ("mmap", 1.0), ("direct", 9.0))]
        self.assertEqual(verdict.judge_rates(experiment("lriot-writes"), runs)[0].ratio, 2.0)

    def test_two_passes_are_a_rival_where_the_claim_is_about_them(self):
        rates = {"outcore": 3.0, "mmap": 2.0, "two-pass": 6.0}
        runs = [line("quicksort", "4", column, rate=rate) for column, rate in rates.items()]
        (found,) = verdict.judge_rates(experiment("quicksort"), runs)
        self.assertEqual((found.rival, found.ratio, found.is_met), ("mmap", 1.5, True))
        one = experiment("quicksort-passes")
        (found,) = verdict.judge_rates(one, [r for r in runs if r["column"] != "mmap"])
        self.assertEqual((found.rival, found.ratio, found.is_met), ("two-pass", 0.5, False))
        section = sections.section_of(one, runs_of(one))
        self.assertEqual(section.head, ("processes", "outcore", "two-pass", "ratio", "paper", ""))

    def test_processes_that_share_are_beside_one_in_plain_memory(self):
        one = experiment("matmul")
        runs = [line("matmul", p, c, rate=rate) for p, c, rate in (
            ("1", "outcore", 98.0), ("1", "dram", 100.0), ("2", "outcore", 154.0),
            ("2", "dram", 200.0))]
        _, two = verdict.judge_rates(one, runs)
        self.assertTrue(two.is_asked and two.is_met)
        self.assertEqual((two.over, two.ratio), (1.54, 0.77))

    def test_what_stands_beside_its_own_first_point_needs_no_rival(self):
        one = experiment("hot-queue")
        runs = [line("hot-queue", "none", "outcore", rate=100.0),
                line("hot-queue", "75 %", "outcore", rate=147.0)]
        _, hot = verdict.judge_rates(one, runs)
        self.assertEqual((hot.over, hot.ratio, hot.is_asked, hot.is_met), (1.47, 0.0, True, False))
        runs[1]["rate"] = 148.0
        self.assertTrue(verdict.judge_rates(one, runs)[1].is_met)

    def test_the_slowest_kernel_by_default_settings_counts(self):
        one = experiment("stream")
        runs = [line("stream", "8", "outcore", copy_mean_mib_s=50.0, triad_mean_mib_s=10.0),
                line("stream", "8", "outcore, 64 KiB", stopped=True),
                line("stream", "8", "dram", copy_mean_mib_s=100.0, triad_mean_mib_s=100.0)]
        (found,) = verdict.judge_slower(one, runs)
        self.assertEqual(found.values, {"outcore COPY": 2.0, "outcore TRIAD": 10.0,
                                        "outcore, 64 KiB COPY": 0.0, "outcore, 64 KiB TRIAD": 0.0})
        self.assertTrue(found.is_asked and found.is_met)
        runs[0]["triad_mean_mib_s"] = 9.9
        self.assertFalse(verdict.judge_slower(one, runs)[0].is_met)

    def test_a_run_that_was_stopped_is_not_as_fast_as_asked(self):
        runs = [line("is", "8", "outcore", stopped=True), line("is", "8", "outcore, 64 KiB"),
                line("is", "8", "dram")]
        self.assertFalse(verdict.judge_slower(experiment("is"), runs)[0].is_met)

    def test_spread_is_of_the_extremes_of_runs_that_ended(self):
        runs = [line("spread", "10", "outcore", seconds=s) for s in (1.0, 1.005, 1.01)]
        runs += [line("spread", "10", "swap", seconds=s, stopped=s == 0) for s in (0, 2.0)]
        ours, swap = verdict.judge_spread(experiment("spread"), runs)
        self.assertAlmostEqual(ours.more["spread"], 0.01 / 1.005)
        self.assertTrue(ours.is_met)
        self.assertEqual(swap.point, "swap, 1 of 2 stopped")

    def test_traffic_is_times_the_bytes_that_must_move(self):
        one = experiment("matmul-traffic")
        (found,) = verdict.judge_traffic(one, [line(one.name, "rows, room for B", "outcore",
                                                    read_bytes=2**24 * 1.1)])
        self.assertEqual(found.more["accessed"], 2)
        self.assertEqual(found.values, {"outcore; requested": 1.0, "outcore; read": 1.1})
        self.assertTrue(found.is_asked and found.is_met)


    def test_the_claim_may_be_beside_another_than_mmap(self):
        runs = [line("matmul", point, column) for point in ("1", "2")
                for column in ("outcore", "dram", "mmap")]
        self.assertEqual(behind_of(experiment("matmul"), runs), [("2", "dram, 1")])
        one = experiment("s3d-same")
        runs = [line(one.name, "8", column) for column in ("outcore", "adios POSIX", "write(2)")]
        self.assertEqual(behind_of(one, runs), [("8", "adios POSIX")])

    def test_of_two_that_are_asked_the_worse_comes_first(self):
        one = experiment("kmers")
        runs = [line(one.name, point, column, rate=rate if column == "outcore" else 1.0)
                for point, rate in (("hash", 0.9), ("two-level", 0.3))
                for column in ("outcore", "mmap-random")]
        self.assertEqual([point for point, _ in behind_of(one, runs)], ["two-level", "hash"])

    def test_who_was_stopped_is_said(self):
        one = experiment("bfs-semi")

        def cells(**rates):
            runs = [line(one.name, "1", column.replace("_", "-"), rate=rate, stopped=rate == 0,
                         unit="edges/s" if rate else "") for column, rate in rates.items()]
            return sections.section_of(one, runs).rows[0][-2:], behind_of(one, runs)

        self.assertEqual(cells(outcore=2.0, mmap=0, mmap_random=4.0),
                         (("0.50 x mmap-random", "1 asked: met over mmap, **not** beside "
                           "mmap-random"), [("1", "mmap-random")]))
        self.assertEqual(cells(outcore=0, mmap=0, mmap_random=4.0),
                         (("stopped", "1 asked: **not met**"), [("1", "mmap-random")]))
        self.assertEqual(cells(outcore=2.0, mmap=0, mmap_random=0),
                         (("all others stopped", "1 asked: met"), []))
        one = experiment("lmat")  # nothing is asked with one thread
        runs = [line(one.name, "1", "outcore", rate=0, stopped=True), line(one.name, "1", "mmap")]
        self.assertEqual(behind_of(one, runs), [("1", "mmap")])
        self.assertEqual(sections.section_of(one, [line(one.name, "1", "outcore"), line(
            one.name, "1", "mmap", unit="", stopped=True)]).caption, "x/s")

    def test_what_is_asked_may_be_met_over_mmap_alone(self):
        one = experiment("searches")
        runs = [line(one.name, "map", column, rate=rate) for column, rate in (
            ("outcore", 3.0), ("mmap", 1.0), ("mmap-random", 4.0), ("dram", 90.0))]
        ((_, *cells),) = sections.section_of(one, runs).rows
        self.assertEqual(cells[-1], "1 asked: met over mmap, **not** beside mmap-random")


class Pages(unittest.TestCase):
    def test_every_experiment_has_its_place_on_the_page_of_its_paper(self):
        for one in EXPERIMENTS:
            name = one.paper.lower()
            text = (ROOT / f"docs/papers/{name}.md").read_text(encoding="utf-8")
            self.assertIn(f"## {one.title}\n", text)
            if one.shows != "figures":
                self.assertIn(f"({name}-{one.name}.png)", text)
                self.assertTrue((ROOT / f"docs/papers/{name}-{one.name}.png").is_file(), one.name)

    def test_what_is_not_met_is_bold(self):
        rows = sections.section_of(experiment("checkpoint"), [figure("checkpoint")]).rows
        self.assertEqual(rows, [("pause", "1.5 ms", "3 pages", "at most 1 asked: **not met**")])

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot here")
    def test_all_pages_are_drawn_from_the_runs(self):
        runs = [run for one in EXPERIMENTS for run in runs_of(one)]
        with tempfile.TemporaryDirectory() as name:
            page.draw_pages(runs, [], pathlib.Path(name))
            drawn = {path.name for path in pathlib.Path(name).iterdir()}
        self.assertEqual(drawn, {f"{one.paper.lower()}.md" for one in EXPERIMENTS}
                         | {f"{one.paper.lower()}-{one.name}.png" for one in EXPERIMENTS
                            if one.shows != "figures"})


class Commands(unittest.TestCase):
    def test_a_heap_is_not_kept_for_the_next_run(self):
        words = []
        options = types.SimpleNamespace(folder="f", disk="d", outcore="o", programs=None)
        with mock.patch.object(table.bench_command, "lines_of",
                               lambda *given, **_: words.append(given)):
            for name in ("ycsb-heap", "kmers-heap", "graph-construct", "sort"):
                one = experiment(name)
                table.run(options, None, one, one.points[0], "outcore")
        self.assertEqual(["--keep" in given for given in words], [False, False, False, True])


class StaticPrograms(unittest.TestCase):
    def test_each_has_its_source_and_a_class_and_shares_of_its_data(self):
        static = [one for one in EXPERIMENTS if one.by == "static"]
        self.assertEqual([one.workload for one in static],
                         2 * ["is", "cg", "ft", "stream", "himeno"])
        for one in static:
            self.assertTrue((ROOT / f"bench/static/{one.workload}.cc").is_file())
            self.assertEqual(one.options.split()[0], "--class")
            for point in one.points:
                word, budget = point.options
                self.assertEqual(word, "--budget")
                self.assertTrue(0 < int(budget.removesuffix("%")) <= 100)


class Words(unittest.TestCase):
    def test_wrong_words_get_one_line(self):
        for words in (["--rows", "nothing"], ["--repeats", "0"], ["--wrong"], []):
            said = subprocess.run([sys.executable, ROOT / "bench/papers/table.py", *words],
                                  capture_output=True, text=True, check=False)
            self.assertNotEqual(said.returncode, 0, words)
            self.assertEqual(len(said.stderr.splitlines()), 1, said.stderr)


if __name__ == "__main__":
    unittest.main()
