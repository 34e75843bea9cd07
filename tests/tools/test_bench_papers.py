"""bench-papers: what its experiments ask is what they say, and each has its place on a page."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "papers"), str(ROOT / "bench")]
import page  # noqa: E402
import processor_time  # noqa: E402
import profiles  # noqa: E402
import sections  # noqa: E402
import table  # noqa: E402
import verdict  # noqa: E402
from experiments import EXPERIMENTS  # noqa: E402


def experiment(name):
    return next(e for e in EXPERIMENTS if e.name == name)


def line(row, point, column, **more):
    """A run as `outcore bench` tells it."""
    return {"row": row, "point": point, "column": column, "rate": 1.0, "unit": "x/s",
            "seconds": 1.0, "stopped": False, "page_bytes": 4096, "data_bytes": 2**24,
            "processes": 2, "fills": 4096, "read_bytes": 2**24, "written_bytes": 2**24,
            "faults": 7, "major_faults": 9, "minor_faults": 3, "device": "vda",
            "copy_mean_mib_s": 1.0, "triad_mean_mib_s": 1.0, **more}


def figure(row):
    return {"row": row, "point": "", "column": "outcore", "name": "pause", "unit": "ms",
            "value": 1.5, "how": "3 pages", "asked": 1.0, "is_most": True, "is_met": False}


def runs_of(one):
    if one.shows == "figures":
        return [figure(one.name)]
    return [line(one.name, point.label, column) for point in one.points
            for column in verdict.columns_of(one)]


def behind_of(one, runs):
    return [(found.point, found.other) for found in verdict.behind(one, runs)]


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


SAMPLES = """\
outcore  10.000100000: 
\tffffffff815a1510 flush_tlb_mm_range ([kernel.kallsyms])
\tffffffff816b9706 userfaultfd_ioctl ([kernel.kallsyms])
\t           20b74 ioctl (/usr/lib/libc.so.6)

outcore  10.500000000: 
\tffffffff816b9706 ksys_pread64 ([kernel.kallsyms])

outcore  10.600000000: 
\t           20b74 memcpy (/usr/lib/libc.so.6)
\t           20b74 outcore::paging::Filler::fill (/build/bin/outcore)
\t           20b74 outcore::bench::touch (/build/bin/outcore)

a b  10.700000000: 
\t          16d893 f(int, char (*)[4]) (/usr/bin/a)

outcore  11.000000000: 
\tffffffff816b9706 ksys_pread64 ([kernel.kallsyms])
"""


class ProcessorTime(unittest.TestCase):
    def test_samples_of_the_work_are_told_by_what_they_are_for(self):
        samples = list(processor_time.read_samples(SAMPLES))
        self.assertEqual([time for time, _, _ in samples], [10.0001, 10.5, 10.6, 10.7, 11.0])
        self.assertEqual(samples[3][1:], ("a b", [("f(int, char (*)[4])", False)]))
        seconds = processor_time.seconds_by_kind(samples, 10.0, 11.0)
        self.assertEqual(seconds, dict.fromkeys(
            ("flushes of translations", "reading and writing the store", processor_time.OWN,
             processor_time.OTHERS), 1 / processor_time.HZ))

    def test_own_code_is_told_by_function(self):
        samples = list(processor_time.read_samples(SAMPLES))
        self.assertEqual(processor_time.own_functions(samples, 10.0, 11.0),
                         {"Filler::fill": 1 / processor_time.HZ})
        for name, short in (
                ("outcore::paging::(anonymous namespace)::beside(outcore::A<int> const&)",
                 "paging::beside"),
                ("void outcore::os::Gate<int>::open<true>(int)", "os::Gate")):
            stack = [(name, False)]
            self.assertEqual(list(processor_time.own_functions([(0.5, "outcore", stack)], 0, 1)),
                             [short])

    def test_a_server_on_the_same_processors_has_a_name(self):
        stack = [("ksys_read", True)]
        self.assertEqual(processor_time.kind_of("redis-server", stack), "the Redis server")
        self.assertEqual(processor_time.kind_of("tp_osd_tp", stack), "Ceph, its client among it")
        self.assertEqual(processor_time.kind_of("outcore", stack),
                         "reading and writing the store")

    def test_what_is_not_met_is_looked_at_beside_the_best_rival(self):
        one = experiment("sort")
        runs = [line("sort", "48", "outcore", rate=80.0), line("sort", "48", "mmap", rate=90.0),
                line("sort", "4", "outcore", rate=80.0), line("sort", "4", "mmap", rate=90.0)]
        self.assertEqual(behind_of(one, runs), [("48", "mmap"), ("4", "mmap")])
        runs[0]["rate"] = runs[2]["rate"] = 900.0
        self.assertEqual(behind_of(one, runs), [])
        self.assertEqual(behind_of(experiment("spread"), []), [])

    def test_of_points_of_which_nothing_is_asked_the_worst_is_looked_at(self):
        rates = {"1": 80.0, "4": 70.0, "192": 110.0, "48": 120.0}
        runs = [line("sort", point, column, rate=rate if column == "outcore" else 100.0)
                for point, rate in rates.items() for column in ("outcore", "mmap", "dram")]
        self.assertEqual(behind_of(experiment("sort"), runs), [("4", "mmap")])

    def test_profiles_are_drawn_of_all_rows_or_not_at_all(self):
        runs = [run for one in EXPERIMENTS for run in runs_of(one)]
        # Where all are as fast as each other all is met, but what asks for more than once a rate.
        unmet = [(one.name, point, other) for one in EXPERIMENTS
                 for point, other in behind_of(one, runs)]
        found = [{"profile": name, "point": label, "column": column, "seconds": 2.0,
                     "rate": rate, "unit": "words/s", "by_kind": {"idle": 1.0, "signals": 0.5},
                  "by_function": {"Filler::fill": 0.25}}
                    for name, label, other in unmet
                    for column, rate in (("outcore", 1e6), (other, 0.0))]
        self.assertIn(("sort", "48", "mmap"), unmet)
        of_another = [{**p, "column": p["column"].replace("mmap", "mmap-random")} for p in found]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            profiles.draw_profiles([r for r in runs if r["row"] != "bfs"], found, folder)
            profiles.draw_profiles(runs, [], folder)
            profiles.draw_profiles(runs, [p for p in found if p["profile"] != "sort"], folder)
            profiles.draw_profiles(runs, of_another, folder)
            self.assertEqual(list(folder.iterdir()), [])
            profiles.draw_profiles(runs, found, folder)
            text = (folder / "profiles.md").read_text(encoding="utf-8")
        self.assertIn("| | outcore | mmap |", text)
        self.assertIn("Nanoseconds of a processor for each of the words:", text)
        self.assertIn("| idle | 500 | - |", text)
        self.assertIn("| signals | 250 (100%) | - |", text)
        self.assertIn("mmap was stopped before it ended. Most of ours is signals 100%. Of "
                      "Outcore's own code: `Filler::fill` 50.0% of all.", text)
        self.assertNotIn("Ours works", text)  # beside a run that was stopped

    def test_a_profile_says_for_what_ours_works_longer(self):
        ours = {"rate": 1e6, "seconds": 1.0, "column": "outcore",
                "by_kind": {"idle": 0.5, "signals": 3.0, "copies": 2.0, "faults": 0.5}}
        other = {"rate": 1.0001e6, "seconds": 1.0, "column": "mmap",
                 "by_kind": {"idle": 9.0, "copies": 1.5, "faults": 1.0}}
        self.assertEqual(profiles.differences(ours, other, 1e6, "microseconds"),
                         "Ours works 3 microseconds more than mmap: signals 3, copies 0.5, but 0.5 "
                         "less for faults.")
        self.assertEqual(profiles.most_of(ours), "signals 55%, copies 36%, faults 9%")
        slower = {**other, "rate": 9e5}
        self.assertIn("no longer", profiles.differences(slower, ours, 1e6, "microseconds"))
        self.assertIn("This time ours was no slower than outcore. Most of ours is copies 60%",
                      profiles.differences(other, ours, 1e6, "microseconds"))

    def test_a_setting_of_ours_is_what_the_profile_stands_beside(self):
        one = experiment("half-memory")
        looked_at, seen = [], []

        def run(_options, _engines, _experiment, point, column):
            looked_at.append((point.label, column))
            return [{"started_ns": 0, "seconds": 1.0, "rate": 1.0, "unit": "x/s"}]

        runs = [line(one.name, "24", "outcore", rate=100.0), line(one.name, "12", "mmap"),
                line(one.name, "12", "outcore", rate=10.0)]
        sample = lambda work: (work(), [])  # noqa: E731
        with (mock.patch.object(table, "run", run),
              mock.patch.object(table.processor_time, "sample", sample)):
            table.profile(None, None, None, one, runs, seen.append)
        self.assertEqual(looked_at, [("12", "outcore"), ("24", "outcore")])
        self.assertEqual([p["column"] for p in seen], ["outcore", "outcore, 24"])

    def test_programs_of_occ_and_of_libraries_are_looked_at_by_their_own_names(self):
        own = [("outcore::paging::Filler::fill", False)]
        self.assertEqual(processor_time.kind_of("is-A", own, ("is-",)), processor_time.OWN)
        self.assertEqual(processor_time.kind_of("is-A", own), processor_time.OTHERS)
        measured = [{"started_ns": 0, "seconds": 1.0, "rate": 1.0, "unit": "x/s"}]
        asked = []
        s3d = types.SimpleNamespace(line_anew=lambda *words: asked.append(words[2]) or measured)
        with (mock.patch.object(table.processor_time, "sample", lambda work: (work(), [])),
              mock.patch.object(table, "run_static",
                                lambda *words: asked.append(words[4]) or measured)):
            for name, slow in (("is-occ", {"rate": 0.01}), ("s3d-same", {"rate": 1.0})):
                one = experiment(name)
                runs = [line(name, point.label, column, **(slow if column == "outcore" else {}))
                        for point in one.points for column in verdict.columns_of(one)]
                table.profile(None, None, s3d, one, runs, lambda _: None)
        # Of the points that have none asked the first, where all are as slow.
        self.assertEqual(asked, ["outcore", "dram", "outcore", "adios POSIX"])

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
                         ["is", "cg", "ft", "stream", "himeno", "is", "stream", "himeno"])
        for one in static:
            self.assertTrue((ROOT / f"bench/static/{one.workload}.cc").is_file())
            self.assertEqual(one.options.split()[0], "--class")
            for point in one.points:
                word, budget = point.options
                self.assertEqual(word, "--budget")
                self.assertTrue(0 < int(budget.removesuffix("%")) <= 100)


class Explanations(unittest.TestCase):
    def test_the_point_that_is_behind_by_most_is_told(self):
        def profile(point, column, rate):
            return {"profile": "sort", "point": point, "column": column, "rate": rate,
                    "seconds": 1.0, "unit": "words/s", "by_kind": {"signals": 1.0 / rate}}

        found = [profile("4", "outcore", 2.0), profile("4", "mmap", 4.0),
                 profile("48", "outcore", 1.0), profile("48", "mmap", 4.0)]
        self.assertEqual(profiles.explanation_of(experiment("sort"), found),
                         "[What stands in the way](profiles.md) (threads: 48), for each of the "
                         "words: ours works 0.938 seconds more than mmap: signals 0.938.")
        self.assertEqual(profiles.explanation_of(experiment("sort"), []), "")


class Words(unittest.TestCase):
    def test_wrong_words_get_one_line(self):
        for words in (["--rows", "nothing"], ["--repeats", "0"], ["--wrong"], []):
            said = subprocess.run([sys.executable, ROOT / "bench/papers/table.py", *words],
                                  capture_output=True, text=True, check=False)
            self.assertNotEqual(said.returncode, 0, words)
            self.assertEqual(len(said.stderr.splitlines()), 1, said.stderr)


if __name__ == "__main__":
    unittest.main()
