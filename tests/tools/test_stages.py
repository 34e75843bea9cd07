"""The stages of tools/test.sh: every test runs in a default one."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def label_of(folder):
    """Of a folder of tests: its own name, but those of the command and of plain C are one each."""
    return "cli" if folder == ROOT / "cli/tests" else folder.name


class Stages(unittest.TestCase):
    def setUp(self):
        script = (ROOT / "tools/test.sh").read_text(encoding="utf-8")
        parts = re.findall(r"^without_sanitizers\+?='(.*)'$", script, re.MULTILINE)
        self.of_gcc = re.compile("".join(parts))
        cmake = (ROOT / "tests/CMakeLists.txt").read_text(encoding="utf-8")
        self.not_sanitized = {ROOT / name for name in
                              re.search(r"REMOVE_ITEM folders (cli/.*)\)", cmake)[1].split()}

    def folders(self, glob):
        """Those that have tests of this kind."""
        return sorted({path.parent for path in ROOT.glob(glob)
                       if not path.relative_to(ROOT).parts[0].startswith("build")})

    def test_what_sanitizers_leave_out_runs_in_gcc(self):
        self.assertIn(ROOT / "sight/tests/sight", self.not_sanitized)
        for folder in self.not_sanitized:
            self.assertRegex(label_of(folder), self.of_gcc, folder)

    def test_scripts_run_in_gcc(self):
        folders = self.folders("*/tests/*/test_*.py") + self.folders("tests/*/test_*.py")
        self.assertIn(ROOT / "sight/tests/page", folders)
        for folder in folders:
            self.assertRegex(label_of(folder), self.of_gcc, folder)


if __name__ == "__main__":
    unittest.main()
