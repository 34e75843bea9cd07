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
    return {"workload": "work", "row": row, "point": point, "column": column,
            "rate": 1.0, "unit": "x/s",
            "seconds": 1.0, "stopped": False, "page_bytes": 4096, "data_bytes": 2**24,
            "processes": 2, "fills": 4096, "read_bytes": 2**24, "written_bytes": 2**24,
            "faults": 7, "major_faults": 9, "minor_faults": 3, "device": "vda",
            "copy_mean_mib_s": 1.0, "triad_mean_mib_s": 1.0, "budget_bytes": 2**20,
            "policy": "s3-fifo", "choice": "4k, 90 to 70 %, 1",
            "seen": {"used": 0.5, "nearly": 0.25, "written": 0.125}, "reuse": reuse(), **more}


def reuse(**more):
    """Of 100 touches 40 are first ones; 10 are again with nothing between, 50 with 1 to 2 MiB."""
    return {"first": 40, "again": [10, 0, 0, 0, 0, 0, 0, 0, 0, 50], "sampled_one_in": 1,
            "lost_events": 0, "sequential": 0.5, "strided": 0.0, **more}


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
