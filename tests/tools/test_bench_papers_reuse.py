"""bench-papers: reuse distances, and what the paper's decision tree makes of them."""

import pathlib
import shutil
import tempfile
import unittest

from papers_lines import experiment, line, reuse as reuse_of  # first: the paths

import decision_tree
import gnuplot
import published_runs
import reuse
import sections
import table
from bench_command import Failed

MIB = 2**20


class Shares(unittest.TestCase):
    def test_those_within_a_size_are_of_all_touches(self):
        seen = reuse_of()
        self.assertEqual(decision_tree.touches_of(seen), 100)
        self.assertEqual(decision_tree.share_within(seen, 4096), 0.1)
        self.assertEqual(decision_tree.share_within(seen, MIB), 0.1)
        self.assertEqual(decision_tree.share_within(seen, 2 * MIB), 0.6)

    def test_of_a_bucket_that_lies_across_a_part_counts(self):
        self.assertAlmostEqual(decision_tree.share_within(reuse_of(), MIB * 3 // 2), 0.35)

    def test_where_nothing_was_touched_there_are_none(self):
        self.assertEqual(decision_tree.share_within(reuse_of(first=0, again=[]), MIB), 0)

    def test_a_curve_rises_to_what_is_not_a_first_touch(self):
        points = reuse.curve(line("reuse", "sort", "outcore", data_bytes=4 * MIB))
        self.assertEqual(points[-1], (50.0, 60.0))
        self.assertEqual(points[0], (100 * 4096 / (4 * MIB), 10.0))
        self.assertEqual(points, sorted(points))


class Tree(unittest.TestCase):
    def choose(self, rates=None, used=0.25, read=100, written=0, budget=MIB, **seen):
        profile = {"reuse": reuse_of(**seen), "read_bytes": read, "written_bytes": written}
        tried = []

        def rate_by(choice):
            tried.append(choice.page)
            return rates[choice.page]

        return decision_tree.choice_of(profile, used, budget, rate_by), tried

    def test_of_larger_pages_is_used_what_faults_no_more(self):
        def used(narrow, wide):
            return decision_tree.used_of({"faults": narrow}, {"faults": wide})

        self.assertEqual((used(1000, 250), used(1000, 1000), used(1000, 2000)), (1, 0.25, 0.125))

    def test_misses_that_are_anywhere_get_small_pages_and_no_trial(self):
        choice, tried = self.choose(used=0.49)
        self.assertEqual((choice.page, tried), ("4k", []))

    def test_pages_grow_until_they_are_slower(self):
        rates = {"4k": 1.0, "16k": 2.0, "64k": 2.0, "256k": 1.0, "1M": 9.0}
        choice, tried = self.choose(rates, used=0.9)
        self.assertEqual((choice.page, tried), ("64k", ["4k", "16k", "64k", "256k"]))

    def test_pages_that_are_never_slower_are_the_largest(self):
        choice, _ = self.choose(dict.fromkeys(decision_tree.PAGES, 1.0), used=0.5)
        self.assertEqual(choice.page, "1M")

    def test_fuller_memory_is_for_what_nearly_fits(self):
        # Half of all touches come again with 1 to 2 MiB between.
        self.assertEqual(self.choose(budget=MIB)[0].marks, ("99", "95"))
        self.assertEqual(self.choose(again=[], budget=MIB)[0].marks, ("90", "70"))
        again = [0] * 9 + [5]
        self.assertEqual(self.choose(first=95, again=again)[0].marks, ("90", "70"))

    def test_what_writes_much_gets_two_threads_that_evict(self):
        self.assertEqual(self.choose(written=50)[0].evictors, 2)
        self.assertEqual(self.choose(written=49)[0].evictors, 1)

    def test_what_is_chosen_is_what_is_run_and_told(self):
        ran = []

        def run(words, variables):
            ran.append((words, variables))
            return line("tree", "kmers", "", rate=len(ran), faults=100)

        words = experiment("tree").points[3].options
        (told,) = decision_tree.lines_of(run, words, decision_tree.BY_TREE)
        (profile, _), (wide, _), (by_tree, variables) = ran
        self.assertIn("--reuse", profile)
        self.assertEqual(profile[profile.index("--budget") + 1], "4M")
        self.assertEqual(wide[-2:], ("--page", "16k"))
        self.assertNotIn("--reuse", by_tree)
        self.assertEqual(by_tree[-2:], ("--page", "4k"))
        self.assertEqual((variables["OUTCORE_FETCH"], variables["OUTCORE_POLICY"]),
                         ("page", "fifo"))
        self.assertEqual((told["rate"], told["choice"]), (3, "4k, 99 to 95 %, 2"))
        ran.clear()
        decision_tree.lines_of(run, words, "outcore")
        self.assertEqual(ran, [(words, {})])

    def test_a_profile_that_was_stopped_chooses_nothing(self):
        words = experiment("tree").points[0].options
        for stopped in (1, 2):
            ran = []

            def run(asked, _variables, ran=ran, stopped=stopped):
                ran.append(asked)
                return line("tree", "sort", "", stopped=len(ran) == stopped)

            with self.assertRaisesRegex(Failed, "was stopped"):
                decision_tree.lines_of(run, words, decision_tree.BY_TREE)
            self.assertEqual(len(ran), stopped)

    def test_every_point_has_a_budget_beside_which_a_profile_has_another(self):
        for point in experiment("tree").points:
            budget = point.options[point.options.index("--budget") + 1]
            small = decision_tree.SMALL_BUDGETS[budget]
            self.assertGreaterEqual(decision_tree.run_bytes(budget),
                                    2 * decision_tree.run_bytes(small))


class Sections(unittest.TestCase):
    def test_the_table_of_distances_says_what_was_not_seen(self):
        one = experiment("reuse")
        runs = [line("reuse", point.label, "outcore", data_bytes=4 * MIB) for point in one.points]
        runs[1]["reuse"] = reuse_of(sampled_one_in=4, lost_events=1200)
        rows = sections.section_of(one, runs).rows
        self.assertEqual(rows[0], ("sort", "100", "40", "10", "10", "60", "60", "50", ""))
        self.assertEqual(rows[1][-1], "one page in 4 followed, 1.2 k events lost")

    def test_the_default_is_beside_the_trees_choice(self):
        one = experiment("tree")
        runs = [line("tree", "bfs", "outcore", rate=3.0, faults=1024),
                line("tree", "bfs", decision_tree.BY_TREE, rate=2.0)]
        section = sections.section_of(one, runs)
        self.assertEqual(section.rows, [
            ("bfs", "50", "25", "0.12", "4k, 90 to 70 %, 1", "2", "16 KiB", "s3-fifo", "3", "1.50",
             "32 to 256 KiB", "")])
        self.assertEqual(len(section.head), len(section.rows[0]))

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot here")
    def test_curves_are_drawn_beside_a_mark(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.png"
            gnuplot.draw_shares(path, "t", "x", "y", {"a": [(1, 2), (10, 50)], "b": []}, ("m", 5))
            self.assertTrue(path.read_bytes().startswith(b"\x89PNG"))


class Runs(unittest.TestCase):
    def test_the_command_of_a_point_is_its_first_word(self):
        for name in ("reuse", "tree"):
            one = experiment(name)
            self.assertIn(f"--rows {name}", published_runs.command_of(one))
            workloads = [table.workload_of(one, point.options)[0] for point in one.points]
            self.assertEqual(workloads, ["sort", "bfs", "ycsb", "kmers", "images",
                                         "graph-construct"])
        self.assertEqual(table.workload_of(experiment("sort"), ("--threads", "1")),
                         ("sort", ("--threads", "1")))

    def test_what_is_drawn_is_kept(self):
        for name, keys in (("reuse", {"reuse", "data_bytes", "budget_bytes"}),
                           ("tree", {"choice", "seen", "policy", "fills", "faults", "page_bytes",
                                     "rate"})):
            one = experiment(name)
            with tempfile.TemporaryDirectory() as folder:
                runs = [line(name, one.points[0].label, "outcore")]
                (kept,) = published_runs.merged(pathlib.Path(folder) / "runs.json", runs)
            self.assertLessEqual(keys, set(kept))


if __name__ == "__main__":
    unittest.main()
