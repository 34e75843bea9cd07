"""check_circles: which circles it finds, and what is none."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_circles  # noqa: E402


def problems(**texts):
    folder = check_circles.PACKAGE
    return check_circles.check({folder / f"{name}.py": text for name, text in texts.items()})


class CheckCircles(unittest.TestCase):
    def test_imports_downwards_are_no_circle(self):
        self.assertEqual([], problems(_core="import numpy\n", __init__="from .array import Array\n",
                                      array="from . import _core, walk\nimport numpy\n",
                                      view="from . import walk as w\nimport array\n",
                                      walk="import os\n"))

    def test_a_circle_of_two_is_found_and_told(self):
        found = problems(array="import os\nfrom . import view\n", view="from .array import Array\n")
        self.assertEqual(1, len(found))
        self.assertIn("python/outcore/array.py:2: ", found[0])
        self.assertIn("array → view → array", found[0])

    def test_an_import_within_a_function_counts(self):
        late = "def f():\n    from .array import Array\n"
        self.assertEqual(1, len(problems(array="from .view import View\n", view=late)))

    def test_an_import_for_type_checkers_counts(self):
        only = "if TYPE_CHECKING:\n    from .array import Array\n"
        self.assertEqual(1, len(problems(array="from .view import View\n", view=only)))

    def test_a_longer_circle_is_found_behind_modules_that_are_in_none(self):
        found = problems(a="from . import b, c\n", b="import os\n", c="from .d import x\n",
                         d="from outcore.e import y\n", e="import outcore.c\n")
        self.assertEqual(1, len(found))
        self.assertIn("c → d → e → c", found[0])

    def test_a_module_that_imports_the_package_is_in_a_circle_with_it(self):
        self.assertEqual(1, len(problems(__init__="from .a import x\n", a="import outcore\n")))

    def test_a_module_that_imports_itself_is_a_circle(self):
        self.assertEqual(1, len(problems(a="from .a import x\n")))


if __name__ == "__main__":
    unittest.main()
