"""Place: where a table is measured, and with what; what its works have in common."""

import glob
import json
import pathlib
import subprocess
from dataclasses import dataclass

from process import Device, last_json

SOURCES = pathlib.Path(__file__).resolve().parent
PROGRAMS = SOURCES.parents[1] / "run" / "tests" / "programs"
MIB = 2**20


@dataclass
class Place:
    """Paths are of folders and files that are there."""

    folder: pathlib.Path  # on the device
    outcore: str
    python: str  # with NumPy and the package outcore
    programs_python: str  # with the packages of both requirements.txt
    mmap_random: str  # the library made of mmap_random.c
    is_quick: bool

    def __post_init__(self):
        self.device = Device(self.folder)

    def scale(self, size_bytes):
        """A size of the full table, or what a quick one has in its place."""
        return size_bytes // 4 if self.is_quick else size_bytes

    def make(self, path, make_it):
        """Calls ``make_it(unfinished)`` unless ``path`` was made before."""
        if not path.exists():
            unfinished = path.with_name(path.name + ".unfinished")
            make_it(unfinished)
            unfinished.rename(path)
        return path


def run_quietly(command, **options):
    """Its output; one line of the reason if it fails."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                          **options)
    if done.returncode != 0:
        words = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise SystemExit(f"bench-doors: {pathlib.Path(command[0]).name} failed: {words}")
    return done.stdout


def under_outcore(place, budget_bytes, delivery=None, profile=None, min_size=None):
    """The words before a program: `outcore run` with this budget, and its report. ``profile``: of
    learnt starts."""
    options = [] if delivery is None else ["--delivery", delivery]
    options += [] if profile is None else ["--learn", str(profile)]
    options += [] if min_size is None else ["--min-size", min_size]
    return [place.outcore, "run", "--budget", str(budget_bytes), "--json", report_of(place),
            *options, "--"]


def report_of(place):
    return str(place.folder / "report.json")


def take_report(place):
    """Sums over the processes of the last run, and the delivery; the report is removed."""
    path, documents = report_of(place), []
    for name in glob.glob(glob.escape(path) + "*"):
        documents += _documents(pathlib.Path(name).read_text("utf-8"))
        pathlib.Path(name).unlink()
    files = [f for d in documents for f in d["files"]]
    found = {key: sum(f[key] for f in files) for key in ("fills", "read_bytes", "written_bytes")}
    found["counters"] = {}
    for file in files:
        for key, value in file["counters"].items():
            if isinstance(value, int) and not isinstance(value, bool):
                found["counters"][key] = found["counters"].get(key, 0) + value
    deliveries = {p["delivery"] for d in documents for p in d["processes"] if p.get("delivery")}
    found["delivery"] = ", ".join(sorted(deliveries))
    found["used_bytes_max"] = max((d["peak_bytes"] for d in documents), default=0)
    return found


def _documents(text):
    decoder, documents, text = json.JSONDecoder(), [], text.strip()
    while text:
        document, end = decoder.raw_decode(text)
        documents.append(document)
        text = text[end:].strip()
    return documents


def own_line(taken):
    """What a program of ours said of its run; a SystemExit with its words if it failed."""
    found = last_json(taken.output)
    if not found and not taken.is_stopped and not taken.is_killed:
        words = (taken.errors.strip().splitlines() or [f"status {taken.status}"])[-1]
        raise SystemExit(f"bench-doors: a program failed: {words}")
    return found
