"""Rows: what the table shows, and what is asked of Outcore."""

from array_work import ArrayWork
from kraken_work import KrakenWork
from record_work import RecordWork, SecondStartWork
from row import Asked, Row

ALL = ["mmap", "mmap-random", "outcore", "outcore-in-thread"]
GATHERS = [*ALL, "outcore-gather"]


def array_row(name, title, asked_title, ratio_min, memories=ALL, once=()):
    asked = [Asked(asked_title, "outcore", "better", ratio_min),
             Asked("  in-thread", "outcore-in-thread", "better", None)]
    if "outcore-gather" in memories:
        asked.append(Asked("  by a.gather(rows)", "outcore-gather", "better", None))
    return Row(name, f"NumPy, 2 GiB in 256 MiB: {title}",
               lambda place: ArrayWork(place, name, memories), asked, set(once))


# In the order in which they run: what writes comes last. Where the default readahead takes very
# long, it runs once.
ROWS = [
    Row("kraken2", "kraken2 --memory-mapping, 1 GiB database in 300 MiB, cold", KrakenWork, [
        Asked("kraken2, in-thread", "outcore-in-thread", "mmap-random", 1.0),
        Asked("kraken2, in-thread", "outcore-in-thread", "mmap", 4.0),
        Asked("kraken2, messages", "outcore", "mmap-random", 0.7)], {"mmap"}),
    Row("lmdb", "LMDB, 1 GiB in 256 MiB: random reads", RecordWork, [
        Asked("LMDB reads, in-thread", "outcore-in-thread", "mmap-random", 0.9),
        Asked("LMDB reads, messages", "outcore", "mmap-random", 0.9)], {"mmap"}),
    Row("second-start", "LMDB, 1 GiB in 256 MiB: the first 10,000 reads, after --learn",
        SecondStartWork, [
            Asked("second start, beside the first", "outcore-second", "outcore", 2.0),
            Asked("  beside mmap", "outcore-second", "better", None)], {"mmap"}),
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
