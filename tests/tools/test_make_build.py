"""`make build` builds all that `make install` installs."""

import fnmatch
import os
import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("OUTCORE_TEST_BUILD_DIR", ""))


def install_scripts():
    """The scripts that `cmake --install` runs: those of the tests' folders install nothing."""
    return [path for path in BUILD.glob("**/cmake_install.cmake") if "CMakeFiles" not in path.parts]


class MakeBuild(unittest.TestCase):
    def test_it_names_the_target_that_makes_all_that_is_installed(self):
        text = (SOURCE / "Makefile").read_text(encoding="utf-8")
        recipe = re.search(r"^build:.*\n((?:\t.*\n)+)", text, re.MULTILINE).group(1)
        self.assertRegex(recipe, r"--target installable\b")
        self.assertRegex(text, r"(?m)^install: build\b")

    @unittest.skipUnless((BUILD / "CMakeFiles/VerifyGlobs.cmake").is_file(), "needs CMake's globs")
    def test_what_is_built_makes_no_list_of_sources_longer(self):
        text = (BUILD / "CMakeFiles/VerifyGlobs.cmake").read_text(encoding="utf-8")
        patterns = re.findall(r'^file\(GLOB\S* NEW_GLOB .*"([^"]+)"\)', text, re.MULTILINE)
        self.assertGreater(len(patterns), 30)
        for pattern in patterns:
            parts = pathlib.PurePath(pattern).parts[:len(BUILD.parts)]
            is_above = len(parts) == len(BUILD.parts) and all(
                map(fnmatch.fnmatchcase, BUILD.parts, parts))
            self.assertFalse(is_above, pattern)

    @unittest.skipUnless((BUILD / "build.ninja").is_file(), "needs a build folder made for ninja")
    def test_what_is_installed_from_the_build_folder_is_made_by_it(self):
        commands = subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", "installable"],
                                  check=True, capture_output=True, text=True).stdout
        made = {str(BUILD / word) for word in commands.split()}
        wanted = set()
        for script in install_scripts():
            for path in re.findall(r'"(/[^"]+)"', script.read_text(encoding="utf-8")):
                inside = path.startswith(f"{BUILD}/") and "/CMakeFiles/" not in path
                if inside and not path.endswith(".cmake") and "$" not in path:
                    wanted.add(path)
        programs = {pathlib.Path(path).name for path in wanted}
        self.assertLessEqual({"outcore", "occ", "liboutcore_preload.so"}, programs)
        # What configuring makes, and the second name that the rule of dlm.ld gives occ.
        configured = {"outcore.pc", "occ_places", "occ++"}
        missing = sorted(p for p in wanted - made if pathlib.Path(p).name not in configured)
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
