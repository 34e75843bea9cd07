"""The page of `outcore report` in a browser: samples of runs, each checked."""

import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).parent
TEMPLATE = HERE.parents[1] / "page" / "report.html"
D3 = pathlib.Path("/usr/share/nodejs/d3/dist/d3.min.js")


class Page(unittest.TestCase):
    def test_pages_of_samples_have_what_they_should(self):
        if not D3.exists():
            self.skipTest(f"{D3} is missing")
        done = subprocess.run([sys.executable, "-B", HERE / "check_page.py", "--samples", TEMPLATE,
                               D3], capture_output=True, text=True, timeout=280, check=False)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
