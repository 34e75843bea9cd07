"""KrakenWork: reads classified by kraken2 with its hash table mapped."""

import hashlib
import subprocess

from place import MIB, PROGRAMS, run_quietly, take_report, under_outcore

BUILD = "/usr/lib/kraken2/build_db"  # where Debian's kraken2 has it
CELL_BYTES = 4
MASK = "1111111111111111101010101010101"


class KrakenWork:
    name = "kraken2"
    memories = ["mmap", "mmap-random", "outcore", "outcore-messages"]
    threads = 2

    def __init__(self, place):
        self.place = place
        self.data_bytes, self.budget_bytes = place.scale(1024 * MIB), place.scale(300 * MIB)
        self._reads = place.scale(5000)
        self._folder = place.folder / "kraken2"

    def prepare(self):
        database = self.place.make(self._folder, self._make) / "database"
        return sorted(database.iterdir())

    def _make(self, folder):
        # Far more cells than k-mers: what is looked up lies anywhere in the table.
        for genomes, name, cells in ((24, "database", self.data_bytes // CELL_BYTES),
                                     (1, "start", 2**18)):
            at = folder / name
            at.mkdir(parents=True)
            run_quietly(["python3", PROGRAMS / "make_genomes.py", genomes, 24_000_000 // 48,
                         self._reads], cwd=at)
            with open(at / "genomes.fa", "rb") as fasta:
                command = [BUILD, "-k", 35, "-l", 31, "-S", MASK, "-H", "hash.k2d", "-t",
                           "taxo.k2d", "-o", "opts.k2d", "-n", "taxonomy/", "-m",
                           "seqid2taxid.map", "-c", cells, "-p", 2]
                subprocess.run(list(map(str, command)), cwd=at, stdin=fasta, check=True,
                               capture_output=True)
        database = folder / "database"
        for name in ("reads.fa", "truth.tsv"):
            (database / name).rename(folder / name)
        for left in ("genomes.fa", "seqid2taxid.map"):
            (database / left).unlink()
        run_quietly(["rm", "-r", database / "taxonomy"])

    def command(self, memory, is_start):
        self._output = self._folder / "output.txt"
        self._output.unlink(missing_ok=True)
        database = self._folder / ("start" if is_start else "database")
        words = ["kraken2", "--db", database, "--threads", str(self.threads), "--memory-mapping",
                 "--output", self._output, self._folder / "reads.fa"]
        environment = {"LC_ALL": "C"}  # kraken2 is in Perl, which warns of locales
        if memory == "mmap-random":
            environment["LD_PRELOAD"] = self.place.mmap_random
        if memory.startswith("outcore"):
            delivery = "messages" if memory == "outcore-messages" else None
            words = under_outcore(self.place, self.budget_bytes, delivery) + words
        self._is_under_outcore = memory.startswith("outcore")
        return list(map(str, words)), environment

    def result(self, taken):
        if taken.status != 0 and not taken.is_stopped and not taken.is_killed:
            raise SystemExit(f"bench-doors: kraken2 failed with status {taken.status}: "
                             f"{taken.errors.strip()[-200:]}")
        line = {"seconds": taken.seconds, "work": self._reads, "unit": "reads/s"}
        if self._is_under_outcore:
            line.update(take_report(self.place))
        if self._output.exists():
            lines = self._output.read_text("ascii").splitlines()
            found = ["\t".join(line.split("\t")[1:3]) for line in lines]
            truth = (self._folder / "truth.tsv").read_text("ascii").splitlines()
            line["is_right"] = found == truth
            line["answer"] = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
        return line

    def clean_up(self):
        pass
