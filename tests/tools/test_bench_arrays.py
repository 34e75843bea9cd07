"""bench-arrays: lines and tokens are counted as is said, and what is asked is judged as is said."""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "rivals"))
import code_size  # noqa: E402
import judge  # noqa: E402
import programs  # noqa: E402


def words(text):
    return [token for _, token in code_size.tokens(text)]


def runs(kind, *seconds, first=()):
    return judge.Runs(kind, list(seconds), list(first))


class Tokens(unittest.TestCase):
    def test_the_longest_operator_is_one(self):
        self.assertEqual(words("a<<=b->*c::d...>>e<=>f%:g"),
                         ["a", "<<=", "b", "->*", "c", "::", "d", "...", ">>", "e", "<=>", "f",
                          "%:", "g"])
        self.assertEqual(words("a+++b"), ["a", "++", "+", "b"])

    def test_literals_are_one_with_their_prefix(self):
        self.assertEqual(words(r'u8"a\"b" L' + r"'\''" + ' R"x(a)"b)x" "//"'),
                         [r'u8"a\"b"', r"L'\''", 'R"x(a)"b)x"', '"//"'])

    def test_numbers_are_one(self):
        self.assertEqual(words("1'000'000 0x1.8p-3 1e+5 .5f 7ull 1+2"),
                         ["1'000'000", "0x1.8p-3", "1e+5", ".5f", "7ull", "1", "+", "2"])

    def test_the_name_of_a_header_is_one(self):
        self.assertEqual(words('#include <a/b-c.h>\n# include "d.h"\na<b>c'),
                         ["#", "include", "<a/b-c.h>", "#", "include", '"d.h"', "a", "<", "b", ">",
                          "c"])

    def test_comments_are_none(self):
        self.assertEqual(code_size.code_size("// a b\n/* c\nd */ e; // f\n\n"), (1, 2))

    def test_no_token_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "line 2"):
            code_size.tokens("a\n`")

    def test_a_line_of_brackets_does_not_count(self):
        self.assertEqual(code_size.code_size("int main() {\n  {\n    f();\n  }\n}\n"), (2, 12))

    def test_the_example_is_as_short_as_the_papers(self):
        size = {name: code_size.code_size(
            (ROOT / f"bench/rivals/example_{name}.cc").read_text(encoding="utf-8"))
            for name in programs.EXAMPLES}
        ours = size.pop("outcore")
        self.assertEqual([v.verdict for v in judge.code({"outcore": ours})], ["met", "met"])
        for name, (lines, tokens) in size.items():
            self.assertLess(ours[0], lines, name)
            self.assertLess(ours[1], tokens, name)


class Judging(unittest.TestCase):
    def phase(self, ours):
        return {"outcore": runs("outcore", ours), "mmap": runs("floor", 1.0),
                "write(2)": runs("floor", 1.2), "adios POSIX": runs("adios", 1.5),
                "adios2": runs("adios", 3.0), "hdf5": runs("other", 1.6)}

    def verdicts(self, row, ours):
        return [v.verdict for v in getattr(judge, row)({row: self.phase(ours)})]

    def test_a_write_is_compared_with_the_faster_floor_and_the_faster_adios(self):
        self.assertEqual(self.verdicts("write", 1.05), ["met", "met"])
        self.assertEqual(self.verdicts("write", 1.06), ["NOT MET", "met"])
        self.assertEqual(self.verdicts("write", 1.16), ["NOT MET", "NOT MET"])

    def test_a_read_has_less_to_gain_on_adios(self):
        self.assertEqual(self.verdicts("same", 1.24), ["NOT MET", "met"])
        self.assertEqual(self.verdicts("same", 1.26), ["NOT MET", "NOT MET"])

    def test_planes_are_compared_with_the_best_rival_but_not_the_floor(self):
        self.assertEqual(self.verdicts("planes", 1.0), ["met"])
        self.assertEqual(self.verdicts("planes", 1.01), ["NOT MET"])

    def test_a_view_is_compared_with_copying(self):
        def verdicts(seconds, first):
            return [v.verdict for v in judge.view(
                {"planes": {"outcore": runs("outcore", 1.0)},
                 "view": {"outcore": runs("outcore", seconds, first=[first])}})]

        self.assertEqual(verdicts(1.05, 0.001), ["met", "met"])
        self.assertEqual(verdicts(1.06, 0.0011), ["NOT MET", "NOT MET"])

    def test_what_was_not_measured_is_not_met_by_chance(self):
        phases = {"write": {"outcore": runs("outcore", 1.0)}}
        self.assertEqual({v.verdict for v in judge.write(phases)}, {"not measured"})
        self.assertEqual({v.verdict for v in judge.view({})}, {"not measured"})

    def test_runs_that_differ_are_said(self):
        phase = self.phase(1.0)
        phase["mmap"] = runs("floor", 1.0, 1.0, 1.3)
        self.assertIn("differ by 30%", judge.write({"write": phase})[0].verdict)


class Examples(unittest.TestCase):
    def test_a_file_without_one_process_data_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            def put(name, order, rank, count=500):
                (pathlib.Path(folder) / name).write_bytes(
                    b"head" + struct.pack(f"{order}{count}d", *[1.0 + rank] * count))

            put("a", "<", 0)
            put("b", ">", 1)
            self.assertTrue(programs.holds(folder, 2))
            put("b", ">", 1, 499)
            self.assertFalse(programs.holds(folder, 2))


# A launcher that says what the programs would say; "hdf5" reads what was not written.
LAUNCHER = """#!/usr/bin/env python3
import json, os, sys
name = next(os.path.basename(w) for w in sys.argv[1:] if os.path.dirname(w) == {folder!r})
if name == {wrong!r}:
    print("-----\\n" + name + ": same: 7 of 9 elements are not what was written", file=sys.stderr)
    sys.exit(1)
for phase in sys.argv[sys.argv.index("--phases") + 1].split(","):
    print(json.dumps({{"memory": name, "variant": "", "version": "1.0", "phase": phase,
                      "processes": 4, "data_bytes": 1 << 20, "checked": phase != "write",
                      "seconds": 1.0 if name == "outcore" else 2.0}}))
"""


class Whole(unittest.TestCase):
    def table(self, wrong="", missing=(), rows=("write", "same", "planes")):
        with tempfile.TemporaryDirectory() as folder:
            names = {p.binary for p in programs.PROGRAMS} - set(missing)
            launcher = pathlib.Path(folder, "bin", "mpirun")
            launcher.parent.mkdir()
            launcher.write_text(LAUNCHER.format(folder=folder, wrong=wrong), encoding="utf-8")
            for path in [launcher, *(pathlib.Path(folder, name) for name in names)]:
                path.touch()
                path.chmod(0o755)
            return subprocess.run(
                [sys.executable, ROOT / "bench/rivals/table.py", "--programs", folder, "--folder",
                 folder, "--quick", "--rows", *rows], text=True, check=False, capture_output=True,
                env={**os.environ, "PATH": f"{launcher.parent}:{os.environ['PATH']}"})

    def test_twice_as_fast_as_all_is_met(self):
        done = self.table()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("2.00 x"), 5, done.stdout)
        self.assertNotIn("NOT MET", done.stdout)

    def test_a_wrong_result_of_a_rival_makes_the_whole_fail(self):
        done = self.table(wrong="hdf5")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not measured: hdf5: 4 processes: hdf5: same: 7 of 9", done.stdout)

    def test_a_write_alone_is_read_again(self):
        done = self.table(rows=["write"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("same 1.000 s", done.stderr)
        self.assertNotIn("read by the same boxes", done.stdout)

    def test_a_rival_that_is_not_there_is_said(self):
        done = self.table(missing=["pnetcdf"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not measured: pnetcdf: cannot be built", done.stdout)

    def test_nothing_is_compared_without_the_floor(self):
        done = self.table(missing=["mmap_floor"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("mmap_floor", done.stderr)


class Words(unittest.TestCase):
    def test_wrong_words_get_one_line(self):
        for said, asked in ((["--rows", "rad"], "not a row"), (["--size", "1X"], "--size"),
                            (["--processes", "3"], "1, 2, 4 or 8")):
            done = subprocess.run([sys.executable, ROOT / "bench/rivals/table.py", *said],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, said)
            self.assertEqual(done.stderr.count("\n"), 1, said)
            self.assertIn(asked, done.stderr)


if __name__ == "__main__":
    unittest.main()
