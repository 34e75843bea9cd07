"""YcsbWork: ycsb_records.py, a mix of the Yahoo! Cloud Serving Benchmark on a database."""

import shutil

from place import MIB, SOURCES, own_line, run_quietly, take_report, under_outcore
from ycsb_stores import PAGE, STORES

PROGRAM = SOURCES / "ycsb_records.py"
MIXES = ("A", "B", "C", "D", "E", "F")
DISTRIBUTIONS = ("zipf", "uniform")


ADVICES = {"mmap": "readahead", "mmap-random": "random", "outcore": "default"}


class YcsbWork:
    """All rows of a database share it, and each run finds it as it was made."""

    memories = list(ADVICES)
    threads = 1

    def __init__(self, place, name, database, mix, distribution):
        self.place, self.name, self._database, self._mix = place, name, database, mix
        self._words = [distribution, 1_000 if mix == "E" else 20_000]
        self.data_bytes, self.budget_bytes = place.scale(1024 * MIB), place.scale(256 * MIB)
        self.answer_bytes = STORES[database].WRITTEN_BYTES

    def prepare(self):
        self._used = self._make(f"ycsb-{self._database}", self.data_bytes)
        self._start = self._make(f"ycsb-{self._database}-start", MIB)
        return sorted(self._used[0].glob(STORES[self._database].FILES))

    def _make(self, name, size_bytes):
        """The folder and how many records were loaded into it."""
        records = size_bytes // PAGE * STORES[self._database].RECORDS_OF_A_PAGE
        folder = self.place.make(self.place.folder / name,
                                 lambda at: run_quietly(self._program("make", at, records)))
        return folder, records

    def _program(self, what, folder, records, *words):
        return [self.place.programs_python, PROGRAM, what, self._database, folder, records, *words]

    def command(self, memory, is_start):
        words = self._program("run", *(self._start if is_start else self._used), ADVICES[memory],
                              "C" if is_start else self._mix,  # a start leaves its data as it is
                              *self._words)
        if memory == "outcore":
            words = under_outcore(self.place, self.budget_bytes,
                                  min_size=STORES[self._database].MIN_SIZE) + words
        self._is_under_outcore = memory == "outcore"
        return list(map(str, words)), {"PYTHONDONTWRITEBYTECODE": "1"}

    def result(self, taken):
        """Verifies all records, in no time that counts. What a stopped run did is not known: then
        the database is made anew."""
        line = own_line(taken)
        if line:
            run_quietly(self._program("restore", *self._used, line["updates"], line["inserts"]))
        else:
            shutil.rmtree(self._used[0])
            self.prepare()
        if self._is_under_outcore:
            line.update(take_report(self.place))
        return line

    def clean_up(self):
        pass
