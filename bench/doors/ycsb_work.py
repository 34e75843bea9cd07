"""YcsbWork: ycsb_records.py, a mix of the Yahoo! Cloud Serving Benchmark on LMDB."""

import shutil

from place import MIB, SOURCES, own_line, run_quietly, take_report, under_outcore

PROGRAM = SOURCES / "ycsb_records.py"
MIXES = ("A", "B", "C", "D", "E", "F")
DISTRIBUTIONS = ("zipf", "uniform")


class YcsbWork:
    """All rows share a database, which each run finds as it was made."""

    memories = ["mmap", "mmap-random", "outcore"]
    threads = 1

    def __init__(self, place, name, mix, distribution):
        self.place, self.name = place, name
        self._mix, self._words = mix, [distribution, 1_000 if mix == "E" else 20_000]
        self.data_bytes, self.budget_bytes = place.scale(1024 * MIB), place.scale(256 * MIB)

    def prepare(self):
        self._folder = self._make("ycsb", self.data_bytes)
        self._start_folder = self._make("ycsb-start", MIB)
        return [self._folder / "data.mdb"]

    def _make(self, name, size_bytes):
        return self.place.make(
            self.place.folder / name,
            lambda at: run_quietly([self.place.lmdb_python, PROGRAM, "make", at, size_bytes]))

    def command(self, memory, is_start):
        folder = self._start_folder if is_start else self._folder
        advice = "random" if memory == "mmap-random" else "default"
        words = [self.place.lmdb_python, PROGRAM, "run", folder, advice,
                 "C" if is_start else self._mix, *self._words]  # a start leaves its data as it is
        if memory == "outcore":
            words = under_outcore(self.place, self.budget_bytes) + words
        self._is_under_outcore = memory == "outcore"
        return list(map(str, words)), {"PYTHONDONTWRITEBYTECODE": "1"}

    def result(self, taken):
        """Verifies all records, in no time that counts. What a stopped run did is not known: then
        the database is made anew."""
        line = own_line(taken)
        if line:
            run_quietly([self.place.lmdb_python, PROGRAM, "restore", self._folder,
                         line["updates"], line["inserts"]])
        else:
            shutil.rmtree(self._folder)
            self.prepare()
        if self._is_under_outcore:
            line.update(take_report(self.place))
        return line

    def clean_up(self):
        pass
