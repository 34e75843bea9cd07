"""ArrayWork: a workload of arrays.py on one file, through numpy.memmap and the Python package."""

import json
import pathlib

from place import MIB, SOURCES, own_line, run_quietly

PROGRAM = SOURCES / "arrays.py"
START_BYTES = 1 * MIB  # of the file that stands in for the data where the program's own is measured
COUNTERS = ("faults", "fault_fills", "prefetch_fills", "rescues", "evictions", "write_backs",
            "write_faults", "waits_for_frame", "waits_for_page", "used_bytes_max")


class ArrayWork:
    def __init__(self, place, name, memories):
        self.place, self.name, self.memories, self.threads = place, name, memories, 1
        self.data_bytes, self.budget_bytes = place.scale(2048 * MIB), place.scale(256 * MIB)
        # What grows with the data, and is measured with very little: `a @ v`, and what checks it.
        self.answer_bytes = self.data_bytes // 1024 * 4 + 32 * MIB if name == "product" else 0
        self._runs = 0

    def prepare(self):
        place = self.place
        self._file = self._make(place.folder / "array.dat", self.data_bytes)
        self._start_file = self._make(place.folder / "start.dat", START_BYTES)
        return [self._file]

    def _make(self, path, size_bytes):
        return self.place.make(
            path, lambda at: run_quietly([self.place.python, PROGRAM, "make", at, size_bytes]))

    def command(self, memory, is_start):
        self._runs += 1
        file = self._start_file if is_start else self._file
        words = [self.place.python, PROGRAM, self.name, memory, file, -self._runs]
        return list(map(str, words)), self._environment(memory)

    def _environment(self, memory):
        environment = {"PYTHONDONTWRITEBYTECODE": "1"}
        if memory.startswith("outcore"):
            environment["OUTCORE_BUDGET"] = str(self.budget_bytes)
        if memory == "outcore-in-thread":
            environment["OUTCORE_DELIVERY"] = "in-thread"
        return environment

    def result(self, taken):
        line = own_line(taken)
        if line and self.name == "writes":
            said = run_quietly([self.place.python, PROGRAM, "check-writes", self._file,
                                -self._runs])
            line["is_right"] = json.loads(said)["is_right"]
        counters = line.pop("counters", None)
        if counters is not None:
            line.update((key, counters[key]) for key in COUNTERS if key in counters)
            line.update((key, counters[key]) for key in ("read_bytes", "written_bytes"))
            line["fills"] = counters["fills"]
        return line

    def clean_up(self):
        """Rows that were written would no longer be what the next workload expects."""
        if self.name == "writes":
            pathlib.Path(self._file).unlink()
