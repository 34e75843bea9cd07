"""changed_tests: which tests a change concerns; no product is left out by a list kept by hand."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import changed_tests  # noqa: E402


class ChangedTests(unittest.TestCase):
    def labels(self, *names):
        return set(changed_tests.labels(ROOT, names))

    def test_what_all_are_made_of_concerns_every_product(self):
        folders = {folder.name for folder in ROOT.glob("*/tests/*/") if folder.is_dir()
                   if folder.parts[-3] != "python"}
        for name in ("core/os/a.cc", "include/outcore/a.h", "cmake/a.cmake", "CMakeLists.txt",
                     "Makefile", "pyproject.toml", "tests/folder.h", "examples/01_a.cc"):
            found = self.labels(name)
            self.assertLessEqual(folders | {"cli", "example", "tools"}, found, name)
            for label in ("sight", "commands", "page", "papers", "umap", "kinds"):
                self.assertIn(label, found, name)

    def test_a_product_concerns_its_own_tests(self):
        self.assertEqual(self.labels("far/redis/a.cc"), {"redis", "rbd", "tools"})
        self.assertEqual(self.labels("cli/text.cc"), {"cli", "tools"})
        self.assertEqual(self.labels("bench/scan.cc"), {"cli", "papers", "tools"})
        self.assertIn("cli", self.labels("arrays/commands/a.cc"))
        self.assertEqual(self.labels("umbrella/tests/kinds/a.cc") & {"kinds"}, {"kinds"})

    def test_documents_and_tools_concern_the_tools(self):
        for name in ("docs/a.md", "README.md", "tools/a.py", "tests/tools/test_a.py"):
            self.assertEqual(self.labels(name), {"tools"}, name)
        self.assertEqual(self.labels(), set())


if __name__ == "__main__":
    unittest.main()
