"""ProgramWork: an unmodified program of run/tests/programs on data four times its budget."""

import hashlib
import os
from dataclasses import dataclass

from place import MIB, PROGRAMS, run_quietly, take_report, under_outcore

BUDGET_BYTES_MIN = 2 * MIB
START_SCALE = 1  # of the data on which the program's own memory is measured


@dataclass
class Program:
    """Lines of bash, run in the folder of the data. They may use $PROGRAMS (the folder of the
    tests' programs), $PYTHON (which has the packages of its requirements.txt) and $SCALE."""

    name: str
    title: str
    scale: int  # how much data, in units of the program's own
    make: str
    run: str  # prints the answer, the same in each memory
    data: str  # a pattern of the files that are mapped


LUCENE = "jar=$(printf '%s:' /usr/share/java/lucene-core-*.jar)"
JAVA = "java -Xms32m -Xmx32m -XX:+UseSerialGC -cp .:$jar -Dscale=$SCALE LuceneIndex"

PROGRAMS_OF_TABLE = [
    Program("sqlite", "sqlite3 with mmap_size: 20,000 rows by key, anywhere", 400, """
sqlite3 t.db "PRAGMA journal_mode=OFF; CREATE TABLE t(i INTEGER PRIMARY KEY, s TEXT);
  WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < $SCALE * 1000)
    INSERT INTO t SELECT x, printf('%01000d', x * 7919 % 1000003) FROM c;" >/dev/null""", """
exec sqlite3 -readonly t.db "PRAGMA mmap_size=4294967296;
  WITH RECURSIVE c(x, y) AS (SELECT 1, 1 UNION ALL
    SELECT x + 1, (y * 48271) % 2147483647 FROM c WHERE x < 20000)
  SELECT count(*), sum(CAST(substr(s, -9) AS INTEGER)) FROM c CROSS JOIN t
    ON t.i = c.y % ($SCALE * 1000) + 1;" """, "t.db"),
    Program("blastn", "blastn: 12 reads, the database is scanned", 40, """
python3 "$PROGRAMS/make_genomes.py" 12 $((SCALE * 1000000)) 12
makeblastdb -in genomes.fa -dbtype nucl -out genomes -blastdb_version 5 >makeblastdb.txt
rm genomes.fa""",
            "exec blastn -db genomes -query reads.fa -outfmt 6 -num_threads 2", "genomes.nsq"),
    Program("bowtie2", "bowtie2 --mm: 200 reads aligned", 40, """
python3 "$PROGRAMS/make_genomes.py" 4 $((SCALE * 1000000)) 200
bowtie2-build -q --threads 2 genomes.fa index""",
            "bowtie2 --mm -f -x index -U reads.fa -p 2 --reorder --seed 1 --no-head 2>/dev/null",
            "index.*.bt2"),
    Program("lastal", "lastal: 100 reads looked up in a suffix array", 40, """
python3 "$PROGRAMS/make_genomes.py" 8 $((SCALE * 1000000)) 100
lastdb -P2 index genomes.fa""",
            "lastal -P2 -f TAB index reads.fa | grep -v '^#' | sort", "index.*"),
    Program("faiss", "FAISS, inverted lists by IO_FLAG_MMAP_IFC: 40 queries", 10, """
"$PYTHON" "$PROGRAMS/faiss_index.py" build""",
            'exec "$PYTHON" "$PROGRAMS/faiss_index.py" mmap-ifc', "ivf.index"),
    Program("lucene", "Lucene, MMapDirectory: a seventh of all documents, 1,000 by key", 10, f"""
{LUCENE}
javac -cp "$jar" -d . "$PROGRAMS/LuceneIndex.java"
{JAVA} build index""", f"{LUCENE}\nexec {JAVA} search index", "index/*.fdt"),
    Program("rocksdb", "RocksDB's db_bench, mmap_read: 40,000 random reads", 16, """
db_bench --db=db --benchmarks=fillrandom,compact --num=$((SCALE * 100000)) --seed=1 \
  --value_size=200 --compression_type=none --target_file_size_base=67108864 >/dev/null 2>&1""", """
db_bench --db=db --use_existing_db=1 --benchmarks=readrandom --num=$((SCALE * 100000)) --seed=2 \
  --value_size=200 --mmap_read=1 --reads=40000 --compression_type=none --readonly=1 2>/dev/null |
  grep -o '([0-9]* of [0-9]* found)'""", "db/*.sst"),
    Program("git", "git cat-file: all objects of a pack", 5, """
git init --quiet .
python3 -c '
import os, random
for number in range(24 * int(os.environ["SCALE"])):
    with open(f"file{number}", "wb") as file:
        file.write(random.Random(number).randbytes(2 << 20))'
git -c core.compression=0 add .
git -c user.name=a -c user.email=a@example.org commit --quiet -m files
git -c core.compression=0 -c pack.window=0 repack --quiet -a -d
rm file*""", "git cat-file --batch --batch-all-objects | md5sum",
            ".git/objects/pack/pack-*.pack"),
    Program("memmap", "np.load(mmap_mode='r'): sums, random rows, a column", 4, """
"$PYTHON" "$PROGRAMS/numpy_memmap.py" save array.npy""",
            'exec "$PYTHON" "$PROGRAMS/numpy_memmap.py" load array.npy', "array.npy"),
    Program("safetensors", "safetensors, safe_open: 24 tokens through 4 of 32 experts a layer", 12,
            """
"$PYTHON" "$PROGRAMS/safetensors_experts.py" build model.safetensors""",
            'exec "$PYTHON" "$PROGRAMS/safetensors_experts.py" run model.safetensors',
            "model.safetensors"),
]


class ProgramWork:
    memories = ["mmap", "mmap-random", "outcore"]
    threads = 1

    def __init__(self, place, program):
        self.place, self.name, self._program = place, program.name, program
        self._scale = max(place.scale(program.scale), START_SCALE + 1)
        self.data_bytes = self.budget_bytes = 0  # known when it is made

    def prepare(self):
        self._folder = self._make(f"program-{self.name}", self._scale)
        self._start_folder = self._make(f"program-{self.name}-start", START_SCALE)
        files = sorted(self._folder.glob(self._program.data))
        self.data_bytes = sum(file.stat().st_size for file in files)
        self.budget_bytes = max(self.data_bytes // 4, BUDGET_BYTES_MIN)
        return files

    def _make(self, name, scale):
        def make(at):
            at.mkdir()
            run_quietly(["bash", "-euc", self._program.make], cwd=at,
                        env={**os.environ, **self._environment(scale)})
        return self.place.make(self.place.folder / name, make)

    def _environment(self, scale):
        return {"PROGRAMS": str(PROGRAMS), "PYTHON": str(self.place.programs_python), "LC_ALL": "C",
                "SCALE": str(scale), "PYTHONDONTWRITEBYTECODE": "1"}

    def command(self, memory, is_start):
        folder, scale = (self._start_folder, START_SCALE) if is_start else \
            (self._folder, self._scale)
        environment = self._environment(scale)
        if memory == "mmap-random":
            environment["LD_PRELOAD"] = self.place.mmap_random
        words = ["bash", "-uo", "pipefail", "-c", self._program.run]
        if memory == "outcore":
            # At the start the smallest budget: what is measured is the program's own memory.
            budget_bytes = BUDGET_BYTES_MIN if is_start else self.budget_bytes
            words = [*under_outcore(self.place, budget_bytes, min_size="1M"), *words]
        self._is_under_outcore = memory == "outcore"
        return ["env", "-C", str(folder), *map(str, words)], environment

    def result(self, taken):
        has_ended = not taken.is_stopped and not taken.is_killed
        if has_ended and (taken.status != 0 or not taken.output):
            raise SystemExit(f"bench-doors: {self.name} failed with status {taken.status}: "
                             f"{taken.errors.strip()[-200:]}")
        line = {"seconds": taken.seconds, "work": 1, "unit": "1/s"}
        if has_ended:  # right: the same as of the other memories, see row.measure()
            line.update(is_right=True,
                        answer=hashlib.sha256(taken.output.encode()).hexdigest()[:16])
        if self._is_under_outcore:
            line.update(take_report(self.place))
        return line

    def clean_up(self):
        pass
