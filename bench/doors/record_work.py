"""RecordWork: records.py, LMDB's random reads; SecondStartWork: the same, twice."""

from place import MIB, SOURCES, own_line, run_quietly, take_report, under_outcore

PROGRAM = SOURCES / "records.py"


class RecordWork:
    name = "lmdb"
    memories = ["mmap", "mmap-random", "outcore", "outcore-messages"]
    threads = 1
    reads = 50_000

    def __init__(self, place):
        self.place = place
        self.data_bytes, self.budget_bytes = place.scale(1024 * MIB), place.scale(256 * MIB)

    def prepare(self):
        self._folder = self._make("lmdb", self.data_bytes)
        self._start_folder = self._make("lmdb-start", MIB)
        return [self._folder / "data.mdb"]

    def _make(self, name, size_bytes):
        return self.place.make(
            self.place.folder / name,
            lambda at: run_quietly([self.place.programs_python, PROGRAM, "make", at, size_bytes]))

    def command(self, memory, is_start):
        folder = self._start_folder if is_start else self._folder
        advice = "random" if memory == "mmap-random" else "default"
        words = [self.place.programs_python, PROGRAM, "read", folder, advice, self.reads]
        if memory.startswith("outcore"):
            delivery = "messages" if memory == "outcore-messages" else None
            words = under_outcore(self.place, self.budget_bytes, delivery) + words
        self._is_under_outcore = memory.startswith("outcore")
        return list(map(str, words)), {"PYTHONDONTWRITEBYTECODE": "1"}

    def result(self, taken):
        line = own_line(taken)
        if self._is_under_outcore:
            line.update(take_report(self.place))
        return line

    def clean_up(self):
        pass


class SecondStartWork(RecordWork):
    """The first start learns, the second has what it learnt: the same reads, both cold. They are
    few: what they need fits, as what a program needs until its first result."""

    name = "second-start"
    reads = 10_000
    memories = ["mmap", "mmap-random", "outcore", "outcore-second"]

    def prepare(self):
        self._profile = self.place.folder / "second-start.learnt"
        return super().prepare()

    def command(self, memory, is_start):
        words, environment = super().command(memory, is_start)
        if memory == "outcore":
            self._profile.unlink(missing_ok=True)
        if memory.startswith("outcore"):
            program = words.index("--") + 1
            before = under_outcore(self.place, self.budget_bytes, profile=self._profile)
            words = [*before, *words[program:]]
        return words, environment

    def clean_up(self):
        self._profile.unlink(missing_ok=True)
