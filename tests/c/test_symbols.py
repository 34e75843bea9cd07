"""The functions of outcore.h, dlm.h and ssd.h are those that outcore.map lists by release.

docs/reference/c.md tells those of outcore.h."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DECLARATION = re.compile(r"^(?!static\b)[\w* ]+?\b(oc_\w+)\(", re.MULTILINE)


def declared(header="outcore.h"):
    return set(DECLARATION.findall((ROOT / "include/outcore" / header).read_text()))


class Symbols(unittest.TestCase):
    def test_the_header_declares_functions(self):
        self.assertLessEqual({"oc_start", "oc_map", "oc_last_error", "oc_info_json"}, declared())

    def test_the_map_lists_every_function_once(self):
        listed = re.findall(r"^ +(oc_\w+);", (ROOT / "src/c/outcore.map").read_text(), re.MULTILINE)
        wanted = declared() | declared("dlm.h") | declared("ssd.h")
        self.assertEqual(sorted(wanted), sorted(listed))

    def test_the_reference_tells_every_function_and_no_other(self):
        text = (ROOT / "docs/reference/c.md").read_text()
        types = set(re.findall(r"typedef struct (oc_\w+)",
                               (ROOT / "include/outcore/outcore.h").read_text()))
        told = set(re.findall(r"\boc_\w+", text)) - types
        told = {name for name in told if not name.endswith("_init")}
        self.assertEqual(declared(), told)


if __name__ == "__main__":
    unittest.main()
