"""Rows of pMAP have right answers: a grid that is stored and read by several processes, with each
library that is here. Its programs are compiled once, which takes ten seconds."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from tiny_rows import BUILD, EXPERIMENTS, ROOT  # first: the paths

import programs
from experiment import PMAP
from s3d import PHASES, S3dRuns
from verdict import columns_of

SIZE = "512K"  # a grid of sixteen cells along each side
PROGRAMS = BUILD / "rivals"
ROWS = [one for one in EXPERIMENTS if one.paper == PMAP]
COLUMNS = {column for one in ROWS for column in columns_of(one)}
VARIANTS = ("pmem:", "pmem:?map_sync=off")


def tiny(one):
    return dataclasses.replace(one, options=f"--size {SIZE}")


def is_installed(library):
    """Of those of programs.PROGRAMS, by the file that its program needs."""
    machine = subprocess.run(["mpicxx", "-dumpmachine"], capture_output=True, text=True,
                             check=True).stdout.strip()
    folder = pathlib.Path("/usr/lib", machine)
    needed = {"hdf5": folder / "hdf5/openmpi/libhdf5.so", "netcdf": folder / "libnetcdf_mpi.so",
              "pnetcdf": folder / "libpnetcdf.so", "adios": folder / "adios/openmpi/libadios.a",
              "adios2": PROGRAMS / "adios2-wheel/adios2/include/adios2.h"}
    return library not in needed or needed[library].exists()


@unittest.skipUnless(shutil.which("mpicxx") and shutil.which("mpirun"),
                     "MPI is not installed: tools/install_packages.sh mpi")
class Rows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = [p for p in programs.PROGRAMS if p.name in COLUMNS]
        compiler = "ccache c++" if shutil.which("ccache") else "c++"
        subprocess.run([ROOT / "bench/rivals/build.sh", next(BUILD.glob("liboutcore.*")), PROGRAMS,
                        *(p.binary for p in cls.programs if is_installed(p.binary))],
                       check=True, capture_output=True, env={**os.environ, "OMPI_CXX": compiler})

    def setUp(self):
        self.data = self.enterContext(tempfile.TemporaryDirectory(dir="/var/tmp"))

    def test_each_row_has_right_answers_with_each_library(self):
        self.assertEqual(COLUMNS, {p.name for p in self.programs})
        runs = S3dRuns(PROGRAMS, self.data)
        for one in ROWS:
            middle = one.points[len(one.points) // 2]
            for point in one.points:
                for column in columns_of(one) if point is middle else ("outcore",):
                    with self.subTest(row=one.name, processes=point.label, column=column):
                        self._check(runs, one, point, column)

    def _check(self, runs, one, point, column):
        library = next(p.binary for p in self.programs if p.name == column)
        if not is_installed(library):
            self.skipTest(f"{library} is not installed: tools/install_rivals.sh {PROGRAMS}")
        for line in runs.line(tiny(one), point, column, 0):
            self.assertIs(line["checked"], True)

    def test_persistent_memory_is_written_and_read_with_and_without_map_sync(self):
        ours = next(p for p in self.programs if p.name == "outcore")
        for variant in VARIANTS:
            with self.subTest(variant=variant):
                lines = programs.measure(ours, PROGRAMS, self.data, 2, SIZE, PHASES,
                                         ["--variant", variant])
                self.assertEqual([line["phase"] for line in lines if line["checked"]],
                                 list(PHASES))

    def test_what_was_not_written_is_found(self):
        ours = next(p for p in self.programs if p.name == "outcore")
        with self.assertRaisesRegex(programs.Failed, "elements are not what was written"):
            programs.measure(ours, PROGRAMS, self.data, 1, SIZE, PHASES, ["--spoil"])


if __name__ == "__main__":
    unittest.main()
