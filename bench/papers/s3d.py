"""s3d: the experiment of pMAP: a grid is stored and read by several processes, as S3D does it.

Its programs are those of bench/rivals, one for each library; one run is a point of all of them.
"""

import sys
from pathlib import Path

from bench_command import Failed
from experiment import PMAP, RIVALS, Experiment, points

sys.path.append(str(Path(__file__).resolve().parents[1] / "rivals"))
import programs  # noqa: E402

PHASES = ("write", "same", "planes", "view")
_LIBRARIES = ("adios POSIX", "adios2", "hdf5", "netcdf", "pnetcdf", "write(2)", "mmap")


def _experiment(phase, title, claim, asked, told, words, rivals=_LIBRARIES,
                beside=("adios POSIX", "")):
    return Experiment(
        f"s3d-{phase}", PMAP, title, "figures 4 and 5" if asked else "evaluation", "s3d",
        "--size 128M", "processes", points("--processes", 1, 2, 4, 8, paper={"8": told}), claim,
        asked, ("8",), words, rivals, beside=beside, by=RIVALS)


S3D = (
    _experiment(
        "write", "Written by boxes", "1.15 times ADIOS, as much as 5 times NetCDF, with 8 to 48 "
        "processes", 1.15, "1.15",
        "Theirs writes 40 GB into persistent memory, and counts from opening to closing; here "
        "that is a disk in memory, and the time ends when all is durable. write(2) and mmap are "
        "files without a library, one for each process: the least that can be."),
    _experiment(
        "same", "Read by the same boxes", "2 times ADIOS, as much as 5 times NetCDF, with 8 to 48 "
        "processes", 2, "2",
        "Nothing is in the page cache. What a library copies beside the device's time is what they "
        "differ by."),
    _experiment(
        "planes", "Read by planes", "no figure: theirs reads what the same process wrote", 0, "",
        "Each process reads what all have written, as an analysis does. Formats that keep a box as "
        "it was written put planes together from many.",
        tuple(name for name in _LIBRARIES if name not in ("write(2)", "mmap"))),
    _experiment(
        "view", "Planes looked at as they lie", "no figure: what pMAP maps it then copies", 0, "",
        "A view is the file's own pages: nothing is copied. The others have none.", (),
        ("outcore", "1")),
)


def _program_of(column):
    return next(p for p in programs.PROGRAMS if p.name == column)


class S3dRuns:
    """A run measures all phases of a program: each is made once, and asked for by phase."""

    def __init__(self, folder, data):
        self._folder, self._data = folder, data
        self._lines = {}  # of a column, a point and a turn

    def line(self, experiment, point, column, turn):
        """Failed: the program is not there, or its run failed; for all phases."""
        key = column, point.label, turn
        if key not in self._lines:
            self._lines[key] = self._measure(column, int(point.label), experiment.options.split())
        lines = self._lines[key]
        if isinstance(lines, Failed):
            raise lines
        phase = experiment.name.partition("-")[2]
        found = [line for line in lines if line["phase"] == phase]
        if not found:
            raise Failed(f"{column} has no phase {phase}")
        return found

    def line_anew(self, experiment, point, column):
        self._lines.pop((column, point.label, None), None)
        return self.line(experiment, point, column, None)

    @staticmethod
    def process_of(column):
        """How the kernel names its processes."""
        return _program_of(column).binary[:15]

    def _measure(self, column, processes, options):
        program = _program_of(column)
        try:
            if self._folder is None or not Path(self._folder, program.binary).is_file():
                raise Failed(f"{program.binary} is not built")
            size = options[options.index("--size") + 1]
            return programs.measure(program, self._folder, self._data, processes, size, PHASES)
        except (Failed, programs.Failed) as why:
            return Failed(str(why))
