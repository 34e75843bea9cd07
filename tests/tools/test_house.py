"""house: what it counts as whose, and that too few assertions are a problem."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import house  # noqa: E402


class House(unittest.TestCase):
    def count(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            return house.count(root)

    def test_a_file_is_of_its_product_of_the_commands_or_of_the_tests(self):
        for name, product in (("core/os/a.cc", "core"), ("sight/commands/a.cc", "commands"),
                              ("cli/a.cc", "cli"), ("core/tests/os/a.cc", "tests"),
                              ("tests/a.h", "tests"), ("tools/a.py", None), ("a.py", None)):
            self.assertEqual(house.product_of(pathlib.PurePosixPath(name)), product, name)

    def test_assertions_are_counted_in_code_alone(self):
        products, _ = self.count({"core/os/a.cc": "  OC_CHECK(a); OC_ASSERT(b);\n// OC_CHECK(c)\n",
                                  "core/os/a.h": "#define OC_CHECK(x) f(x)\n",
                                  "bench/a.cc": "BENCH_CHECK(a);\n", "cli/a.cc": "CLI_CHECK(a);\n",
                                  "core/tests/os/a.cc": "OC_CHECK(a);\n"})
        self.assertEqual(products["core"].assertions, 2)
        self.assertEqual(products["core"].lines, 3)
        self.assertEqual(products["bench"].assertions, 1)
        self.assertEqual(products["cli"].assertions, 1)

    def test_a_product_below_its_floor_is_a_problem(self):
        dense = {f"{name}/a.cc": "OC_CHECK(a);\n" for name in house.FLOORS if name != "commands"}
        dense["far/commands/a.cc"] = "CLI_CHECK(a);\n"
        self.assertEqual(house.below_floor(self.count(dense)[0]), [])
        dense["core/b.cc"] = "\n" * 100
        problems = house.below_floor(self.count(dense)[0])
        self.assertEqual(len(problems), 1)
        self.assertIn("core: 9.9 assertions", problems[0])

    def test_the_longest_functions_come_first(self):
        _, functions = self.count({"core/a.cc": "void a() {\n}\nvoid b() {\n  f();\n}\n"})
        self.assertEqual(functions, [(3, "b", "core/a.cc"), (2, "a", "core/a.cc")])


if __name__ == "__main__":
    unittest.main()
