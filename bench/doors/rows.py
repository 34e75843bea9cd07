"""Rows: what the table shows, and what is asked of Outcore."""

from array_work import ArrayWork
from kraken_work import KrakenWork
from llama_work import EVEN, ZIPF, LlamaWork
from program_work import PROGRAMS_OF_TABLE, ProgramWork
from record_work import RecordWork, SecondStartWork
from row import Asked, Row
from ycsb_work import DISTRIBUTIONS, MIXES, YcsbWork

ALL = ["mmap", "mmap-random", "outcore", "outcore-in-thread"]
GATHERS = [*ALL, "outcore-gather"]
YCSB_DATABASES = {"lmdb": "LMDB", "rocksdb": "RocksDB"}
PROGRAMS_RATIO_MIN = 0.95  # of each program
PROGRAMS_MEAN_MIN = 1.5  # of all of them, the geometric mean


def program_row(program):
    return Row(program.name, program.title, lambda place: ProgramWork(place, program),
               [Asked(program.name, "outcore", "better", PROGRAMS_RATIO_MIN)], set(),
               is_program=True)


def array_row(name, title, asked_title, ratio_min, memories=ALL, once=()):
    asked = [Asked(asked_title, "outcore", "better", ratio_min),
             Asked("  in-thread", "outcore-in-thread", "better", None)]
    if "outcore-gather" in memories:
        asked.append(Asked("  by a.gather(rows)", "outcore-gather", "better", None))
    return Row(name, f"NumPy, 2 GiB in 256 MiB: {title}",
               lambda place: ArrayWork(place, name, memories), asked, set(once))


def ycsb_row(database, mix, distribution):
    name = f"ycsb-{database}-{mix.lower()}-{distribution}"
    title = YCSB_DATABASES[database]
    return Row(name, f"{title}, 1 GiB in 256 MiB: YCSB's mix {mix}, {distribution}",
               lambda place: YcsbWork(place, name, database, mix, distribution),
               [Asked(f"{title}, YCSB {mix}, {distribution}", "outcore", "better", None)], {"mmap"})


def llama_row(what, title, ratio_min, router=EVEN):
    name, preferred = f"llama-{what}", ""
    if router == ZIPF:
        name, preferred = f"{name}-zipf", ", whose router prefers some experts"
    return Row(name, f"llama.cpp, experts of 3 x the budget{preferred}: {title}",
               lambda place: LlamaWork(place, name, what, router),
               [Asked(f"llama.cpp, {name.removeprefix('llama-')}", "outcore", "better",
                      ratio_min)], set())


# In the order in which they run: what writes comes last. Where the default readahead takes very
# long, it runs once.
ROWS = [
    Row("kraken2", "kraken2 --memory-mapping, 1 GiB database in 300 MiB, cold", KrakenWork, [
        Asked("kraken2", "outcore", "better", PROGRAMS_RATIO_MIN),
        Asked("  beside default", "outcore", "mmap", 4.0),
        Asked("  messages", "outcore-messages", "mmap-random", 0.7)], {"mmap"}, is_program=True),
    Row("lmdb", "LMDB, 1 GiB in 256 MiB: random reads", RecordWork, [
        Asked("LMDB reads", "outcore", "better", PROGRAMS_RATIO_MIN),
        Asked("  messages", "outcore-messages", "mmap-random", 0.9)], {"mmap"}, is_program=True),
    Row("second-start", "LMDB, 1 GiB in 256 MiB: the first 10,000 reads, after --learn",
        SecondStartWork, [
            Asked("second start, beside the first", "outcore-second", "outcore", 2.0),
            Asked("  beside mmap", "outcore-second", "better", None)], {"mmap"}),
    *map(program_row, PROGRAMS_OF_TABLE),
    array_row("gather", "random rows of 1 KiB", "a[random rows]", 1.0, GATHERS, {"mmap"}),
    array_row("zipf", "popular rows, zipf 1.2", "a[zipf rows]", 1.3, GATHERS, {"mmap"}),
    array_row("sum", "a.sum()", "a.sum()", 0.95, once={"mmap-random"}),
    array_row("columns", "a[:, j].sum(), 8 columns of 16384 x 32768", "a[:, j].sum(), long rows",
              2.0, once={"mmap"}),
    array_row("short-columns", "a[:, j].sum(), 2 columns of 2097152 x 256 (nothing asked)",
              "a[:, j].sum(), rows of 1 KiB", None, once={"mmap-random"}),
    array_row("blocks", "sums of 64 neighbouring rows, anywhere", "a[i:i + 64].sum()", 1.0),
    array_row("product", "a @ v", "a @ v", 1.0, once={"mmap-random"}),
    array_row("descent", "1500 steps of 64 random rows of 1 KiB", "gradient descent", 1.0,
              once={"mmap"}),
    array_row("writes", "random row writes and flush", "a[rows] = v; a.flush()", 1.2),
]

# Only if they are named.
ROWS_TO_NAME = [
    *(ycsb_row(database, mix, distribution)
      for database in YCSB_DATABASES for mix in MIXES for distribution in DISTRIBUTIONS),
    *(llama_row(what, title, ratio_min, router) for router in (EVEN, ZIPF)
      for what, title, ratio_min in (("prefill", "a prompt of 64 tokens", 2.0),
                                     ("decode", "64 tokens after a prompt of 4", 1.0))),
]
