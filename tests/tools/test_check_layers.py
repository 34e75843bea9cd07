"""check_layers: what it lets pass, and what it must not."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_layers  # noqa: E402


def problems(path, text):
    return check_layers.check_file(pathlib.PurePosixPath(path), text)


def include(*names):
    return "".join(f'#include "{name}"\n' for name in names)


class CheckLayers(unittest.TestCase):
    def test_a_room_includes_lower_floors_and_itself(self):
        text = include("core/base/units.h", "core/os/wait.h", "core/store/x.h", "outcore/store.h")
        text += "#include <outcore/store.h>\n#include <array>\n"
        self.assertEqual(problems("core/store/file_store.cc", text), [])

    def test_a_room_does_not_include_a_higher_floor(self):
        found = problems("core/os/frames.cc", "#include <x>\n" + include("core/paging/fault.h"))
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("core/os/frames.cc:2: "))

    def test_rooms_of_one_floor_are_strangers(self):
        text = include("core/store/file_store.h")
        self.assertEqual(len(problems("core/policy/s3.cc", text)), 1)

    def test_products_lean_on_the_core_and_not_on_each_other(self):
        self.assertEqual(problems("far/store/a.cc", include("core/store/uri.h")), [])
        self.assertEqual(len(problems("far/store/a.cc", include("checkpoints/pool/pool.h"))), 1)
        self.assertEqual(len(problems("core/store/a.cc", include("far/store/far_store.h"))), 1)
        self.assertEqual(len(problems("run/preload/a.cc", include("far/store/far_store.h"))), 1)

    def test_the_umbrella_knows_all_products(self):
        text = include("far/store/far_store.h", "checkpoints/store/versioned_store.h")
        self.assertEqual(problems("umbrella/products.cc", text), [])

    def test_the_public_headers_include_no_room(self):
        text = include("core/base/units.h")
        self.assertEqual(len(problems("include/outcore/region.h", text)), 1)
        text = include("outcore/result.h")
        self.assertEqual(problems("include/outcore/region.h", text), [])

    def test_outside_uses_the_public_api_only(self):
        self.assertEqual(len(problems("cli/info.cc", include("core/base/units.h"))), 1)
        self.assertEqual(problems("bench/commands/bench.cc", include("bench/sort.h")), [])
        self.assertEqual(len(problems("bench/sort.cc", include("far/commands/a.h"))), 1)
        self.assertEqual(len(problems("far/commands/a.cc", include("far/store/far_store.h"))), 1)
        self.assertEqual(problems("examples/sort.cc", "#include <outcore/runtime.h>\n"), [])

    def test_the_type_of_json_alone_is_handed_on(self):
        text = include("core/base/json_fields.h")
        self.assertEqual(problems("cli/json.h", text), [])
        self.assertEqual(problems("bench/result.h", include("cli/json.h")), [])
        self.assertEqual(len(problems("bench/result.h", text)), 1)
        self.assertEqual(len(problems("far/commands/a.cc", text)), 1)
        self.assertEqual(problems("arrays/formats/zarr.cc", include("core/base/json.h")), [])

    def test_an_include_without_a_room_is_refused(self):
        self.assertEqual(len(problems("core/os/wait.cc", include("wait.h"))), 1)

    def test_a_room_without_a_floor_is_refused(self):
        self.assertEqual(len(problems("core/cellar/wine.cc", "")), 1)

    def test_comments_and_tests_are_free(self):
        self.assertEqual(problems("core/os/a.cc", '// #include "core/paging/fault.h"\n'), [])
        self.assertEqual(problems("core/tests/os/a.cc", include("core/paging/fault.h")), [])

    def test_every_room_of_the_project_has_a_floor(self):
        root = check_layers.sources.ROOT
        beside = ("tests", "commands", "formats", "occ")
        for product, rooms in check_layers.PRODUCTS.items():
            found = {p.name for p in (root / product).iterdir() if p.is_dir()}
            self.assertEqual(found - set(beside) - rooms.keys(), set(), product)


if __name__ == "__main__":
    unittest.main()
