"""bench-papers: what stands in the way of what is behind, by what the processors did."""

import pathlib
import tempfile
import types
import unittest
from unittest import mock

from papers_lines import EXPERIMENTS, behind_of, experiment, line, runs_of  # first: the paths

import processor_time
import profiles
import table
import verdict

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
                ("std::pair<int, bool> outcore::paging::Filler::find<true>(int)", "Filler::find")):
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
        self.assertIn("mmap: stopped before it ended. Most of it is signals 100%. Of "
                      "Outcore's own code: `Filler::fill` 50.0% of all.", text)
        self.assertNotIn("Ours works", text)  # beside a run that was stopped

    def test_a_profile_says_for_what_ours_works_longer(self):
        ours = {"rate": 1e6, "seconds": 1.0, "column": "outcore", "unit": "words/s",
                "by_kind": {"idle": 0.5, "signals": 3.0, "copies": 2.0, "faults": 0.5}}
        other = {"rate": 1.0001e6, "seconds": 1.0, "column": "mmap", "unit": "words/s",
                 "by_kind": {"idle": 9.0, "copies": 1.5, "faults": 1.0}}
        one = verdict.Behind("4", "mmap", "4", False)
        self.assertEqual(profiles.told(one, [ours, other]),
                         ("Ours works 3 microseconds more than mmap: signals 3, copies 0.5, but "
                          "0.5 less for faults.", True))
        most = "Most of it is signals 55%, copies 36%, faults 9%."
        self.assertEqual(profiles.told(one, [ours]), (most, False))
        # It waits more, too, or alone.
        waits = {**ours, "by_kind": {**ours["by_kind"], "idle": 19.0}}
        self.assertTrue(profiles.told(one, [waits, other])[0].endswith(
            "less for faults, and the processors wait 10 more."))
        waits = {**waits, "by_kind": {"idle": 19.0, "copies": 1.0}}
        self.assertEqual(profiles.told(one, [waits, other]),
                         ("Ours works no longer than mmap does: the processors wait 10 "
                          "microseconds more.", True))
        less = {**waits, "by_kind": {"copies": 1.0}}
        self.assertEqual(profiles.told(one, [less, other]),
                         ("Other load had the processors. Most of it is copies 100%.", False))

    def test_a_profile_says_where_ours_is_ahead_or_was_stopped(self):
        ours = {"rate": 2.0, "seconds": 1.0, "column": "outcore", "unit": "words/s",
                "by_kind": {"signals": 1.0}}
        other = {**ours, "column": "mmap", "rate": 1.0}
        most = " Most of it is signals 100%."
        for is_ahead, said in ((True, "Ours is ahead of mmap, by less than is asked."),
                               (False, "This time ours was no slower than mmap.")):
            one = verdict.Behind("4", "mmap", "4", is_ahead)
            self.assertEqual(profiles.told(one, [ours, other]), (said + most, False))
        stopped = {**ours, "rate": 0.0, "by_kind": {}}
        self.assertEqual(profiles.told(one, [stopped, other]),
                         ("outcore: stopped before it ended.", False))
        self.assertEqual(profiles.told(one, [ours, {**other, "rate": 0.0}]),
                         ("mmap: stopped before it ended." + most, False))
        text = "\n".join(profiles.section_of(experiment("sort"), one, [stopped, stopped]))
        self.assertIn("for each of the words:", text)

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


class Explanations(unittest.TestCase):
    def setUp(self):
        self.one = experiment("sort")
        rates = {"4": 50.0, "48": 60.0, "192": 70.0}
        self.runs = [line("sort", point, column, rate=rate if column == "outcore" else 100.0)
                     for point, rate in rates.items() for column in ("outcore", "mmap")]

    @staticmethod
    def profiles_of(point, rate):
        return [{"profile": "sort", "point": point, "column": column, "rate": its, "seconds": 1.0,
                 "unit": "words/s", "by_kind": {"signals": 1.0}}
                for column, its in (("outcore", rate), ("mmap", 4.0))]

    def test_what_is_asked_and_not_met_is_told_first(self):
        found = [*self.profiles_of("4", 1.0), *self.profiles_of("48", 2.0)]
        self.assertEqual(profiles.explanation_of(self.one, self.runs, found),
                         "[What stands in the way](profiles.md) (threads: 48), for each of the "
                         "words: ours works 250 milliseconds more than mmap: signals 250.")
        self.assertIn("(threads: 4), for each",
                      profiles.explanation_of(self.one, self.runs, found[:2]))

    def test_a_profile_of_what_is_met_by_now_is_not_told(self):
        for run in self.runs:
            run["rate"] = 900.0 if run["column"] == "outcore" else 100.0
        found = self.profiles_of("48", 2.0)
        self.assertEqual(profiles.explanation_of(self.one, self.runs, found), "")
        self.assertEqual(profiles.explanation_of(self.one, self.runs, []), "")


if __name__ == "__main__":
    unittest.main()
