"""papers_lines: made-up runs of the papers' experiments, for tests of what is said of them."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "papers"), str(ROOT / "bench")]
import verdict  # noqa: E402
from experiments import EXPERIMENTS  # noqa: E402


def experiment(name):
    return next(e for e in EXPERIMENTS if e.name == name)


def line(row, point, column, **more):
    """A run as `outcore bench` tells it."""
    return {"row": row, "point": point, "column": column, "rate": 1.0, "unit": "x/s",
            "seconds": 1.0, "stopped": False, "page_bytes": 4096, "data_bytes": 2**24,
            "processes": 2, "fills": 4096, "read_bytes": 2**24, "written_bytes": 2**24,
            "faults": 7, "major_faults": 9, "minor_faults": 3, "device": "vda",
            "copy_mean_mib_s": 1.0, "triad_mean_mib_s": 1.0, **more}


def figure(row):
    return {"row": row, "point": "", "column": "outcore", "name": "pause", "unit": "ms",
            "value": 1.5, "how": "3 pages", "asked": 1.0, "is_most": True, "is_met": False}


def runs_of(one):
    if one.shows == "figures":
        return [figure(one.name)]
    return [line(one.name, point.label, column) for point in one.points
            for column in verdict.columns_of(one)]


def behind_of(one, runs):
    return [(found.point, found.other) for found in verdict.behind(one, runs)]
