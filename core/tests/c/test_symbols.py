"""The functions of the headers for C are those that outcore.map lists by release.

docs/reference/c.md tells those of outcore.h and of arrays."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DECLARATION = re.compile(r"^(?!static\b)\w[\w* ]*?\b(oc_\w+)\(", re.MULTILINE)
INLINE = re.compile(r"^static inline [\w* ]+?\b(oc_\w+)\(", re.MULTILINE)
TOLD = ["outcore.h", "arrays_c.h", "arrays_drain_c.h", "arrays_mpi_c.h"]  # by the reference


def declared(header="outcore.h"):
    return set(DECLARATION.findall((ROOT / "include/outcore" / header).read_text()))


class Symbols(unittest.TestCase):
    def test_the_header_declares_functions(self):
        self.assertLessEqual({"oc_start", "oc_map", "oc_last_error", "oc_info_json"}, declared())

    def test_the_map_lists_every_function_once(self):
        text = (ROOT / "core/c/outcore.map").read_text()
        listed = re.findall(r"^ +(oc_\w+);", text, re.MULTILINE)
        wanted = set().union(*(declared(header) for header in TOLD + ["dlm.h", "ssd.h"]))
        self.assertEqual(sorted(wanted), sorted(listed))

    def test_the_reference_tells_every_function_and_no_other(self):
        text = (ROOT / "docs/reference/c.md").read_text()
        types, functions = set(), set()
        for header in TOLD:
            source = (ROOT / "include/outcore" / header).read_text()
            types |= set(re.findall(r"typedef struct (oc_\w+)", source))
            functions |= declared(header) | set(INLINE.findall(source))
        told = set(re.findall(r"\boc_\w+", text)) - types
        told = {name for name in told if not name.endswith("_init")}
        functions = {name for name in functions if not name.endswith("_init")}
        self.assertEqual(functions, told)


if __name__ == "__main__":
    unittest.main()
