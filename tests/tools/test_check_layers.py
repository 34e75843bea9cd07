"""check_layers: what it lets pass, and what it must not."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_layers  # noqa: E402


def problems(path, text):
    return check_layers.check_file(pathlib.PurePosixPath(path), text)


class CheckLayers(unittest.TestCase):
    def test_a_room_includes_lower_floors_and_itself(self):
        text = '#include "base/units.h"\n#include "os/wait.h"\n#include "store/x.h"\n'
        text += '#include "outcore/store.h"\n#include <outcore/store.h>\n#include <array>\n'
        self.assertEqual(problems("src/store/file_store.cc", text), [])

    def test_a_room_does_not_include_a_higher_floor(self):
        found = problems("src/os/frames.cc", '#include <x>\n#include "paging/fault.h"\n')
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("src/os/frames.cc:2: "))

    def test_rooms_of_one_floor_are_strangers(self):
        self.assertEqual(len(problems("src/policy/s3.cc", '#include "store/file_store.h"\n')), 1)

    def test_the_plan_includes_no_room(self):
        self.assertEqual(len(problems("include/outcore/region.h", '#include "base/units.h"\n')), 1)
        self.assertEqual(problems("include/outcore/region.h", '#include "outcore/result.h"\n'), [])

    def test_outside_uses_the_public_api_only(self):
        self.assertEqual(len(problems("cli/info.cc", '#include "base/units.h"\n')), 1)
        self.assertEqual(problems("cli/bench.cc", '#include "bench/sort.h"\n'), [])
        self.assertEqual(len(problems("bench/sort.cc", '#include "cli/table.h"\n')), 1)
        self.assertEqual(problems("examples/sort.cc", '#include <outcore/runtime.h>\n'), [])

    def test_an_include_without_a_room_is_refused(self):
        self.assertEqual(len(problems("src/os/wait.cc", '#include "wait.h"\n')), 1)

    def test_a_room_without_a_floor_is_refused(self):
        self.assertEqual(len(problems("src/cellar/wine.cc", "")), 1)

    def test_comments_and_tests_are_free(self):
        self.assertEqual(problems("src/os/a.cc", '// #include "paging/fault.h"\n'), [])
        self.assertEqual(problems("tests/os/a.cc", '#include "paging/fault.h"\n'), [])

    def test_every_room_of_the_project_has_a_floor(self):
        root = check_layers.sources.ROOT
        rooms = {f"src/{p.name}" for p in (root / "src").iterdir() if p.is_dir()}
        self.assertEqual(rooms - check_layers.FLOORS.keys(), set())


if __name__ == "__main__":
    unittest.main()
