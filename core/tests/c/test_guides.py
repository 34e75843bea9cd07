"""What the guide of arrays shows of C stands in the example, which is compiled and run."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```c\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Guides(unittest.TestCase):
    def test_every_piece_of_c_is_of_the_example(self):
        pieces = BLOCK.findall((ROOT / "docs/guides/arrays.md").read_text())
        example = (ROOT / "examples/08_arrays_c.c").read_text()
        self.assertGreaterEqual(len(pieces), 2)
        for piece in pieces:
            for part in piece.split("\n\n"):
                self.assertIn(part.strip("\n"), example)


if __name__ == "__main__":
    unittest.main()
