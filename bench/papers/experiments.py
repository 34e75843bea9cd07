"""experiments: what the papers measured, as commands of `outcore bench` that fit a small machine.

Each experiment is one figure or table of a paper: a row for each point of its axis. What the paper
says is a ratio over mmap, or beside what else it names, and stands beside ours.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    label: str  # on the axis
    options: tuple[str, ...]


@dataclass(frozen=True)
class Experiment:
    name: str
    paper: str
    title: str
    place: str  # in the paper
    workload: str
    options: str
    axis: str
    points: tuple[Point, ...]
    claim: str  # in the paper's words and figures
    asked: float  # at the points of its claim: our rate over the rivals' best; 0: no claim
    at: tuple[str, ...]  # those points; (): all
    words: str  # why ours is not theirs
    rivals: tuple[str, ...] = ("mmap", "mmap-random")


def _points(option, *values):
    return tuple(Point(str(value), (option, str(value))) for value in values)


def _pairs(*pairs):
    return tuple(Point(label, tuple(options.split())) for label, options in pairs)


_UMAP = "UMap"
_DI = "DI-MMAP"
_SMALL = "--size 256M --budget 64M"

EXPERIMENTS = (
    Experiment(
        "sort", _UMAP, "Sort of more than memory", "figure 3a", "sort",
        "--size 256M --budget 128M", "threads", _points("--threads", 1, 4, 16, 48),
        "1.15 to 1.22 times mmap with 48 to 240 threads", 1.15, ("48",),
        "Theirs sorts 500 GB on 96 cores, where mmap's threads wait for each other in the kernel. "
        "Here two processors share the work, and what counts is how much is read again."),
    Experiment(
        "bfs", _UMAP, "Breadth-first search, edges in a file", "figure 3b", "bfs",
        "--scale 19 --budget 64M", "threads", _points("--threads", 1, 4, 16, 96),
        "up to 1.3 times mmap at high concurrency", 1.3, ("96",),
        "Their graph has 2^31 vertices on NVMe drives. Ours fits a small machine: its vertices "
        "stay in memory of their own, its edges are twice the budget."),
    Experiment(
        "bfs-buffer", _UMAP, "Breadth-first search in less and less memory", "figure 5a", "bfs",
        "--scale 19 --threads 4", "budget, % of the edges",
        _pairs(("100", "--budget 128M"), ("50", "--budget 64M"), ("25", "--budget 32M"),
               ("12", "--budget 16M")),
        "more buffer, less time, mostly between 10 and 30 %", 1.0, (),
        "As theirs, but that mmap gets the same memory at each point."),
    Experiment(
        "ycsb", _UMAP, "YCSB on a table of records", "figure 3c", "ycsb",
        f"{_SMALL} --mix A --touches 5000 --latency off", "threads",
        _points("--threads", 4, 16, 64),
        "1.3 times mmap with 4 executors, 1.9 times with 64", 1.9, ("64",),
        "Theirs is the database N-Store, with 384 GB of records and transactions; ours is a table "
        "of records and its index, four records a page. Half of the operations write."),
    Experiment(
        "lmat", _UMAP, "Reads told by k-mers", "figure 3d", "kmers",
        f"{_SMALL} --reads 2000", "threads", _points("--threads", 1, 4, 16),
        "up to 1.36 times mmap", 1.36, ("16",),
        "Their database is LMAT's, of 635 GB and of real genomes; ours is made up, with the same "
        "kind of index, and known answers."),
    Experiment(
        "images", _UMAP, "Medians along vectors through images", "umap-apps", "images",
        f"{_SMALL}", "threads", _points("--threads", 1, 4, 16),
        "no figure: the application comes with UMap", 0, (),
        "A vector touches another page in nearly every image: there is nothing to bring in ahead."),
    Experiment(
        "graph-construct", _UMAP, "A graph built edge by edge in a persistent heap", "figure 8",
        "graph-construct", "--scale 17 --budget 48M", "threads", _points("--threads", 1, 2),
        "5 to 12 times mmap, by Metall on UMap with pages of 16 to 256 KiB", 5, (),
        "Theirs has large pages and writes to a network file system; here both write to one fast "
        "disk, by pages of 4 KiB.", ("mmap",)),
    Experiment(
        "lriot-reads", _DI, "Random reads", "figure 3", "random-io",
        f"{_SMALL} --latency off --touches 200000", "threads",
        _points("--threads", 1, 4, 16, 128),
        "87 % of direct I/O with 128 threads; 2.4 times mmap", 0.87, ("128",),
        "Ours is beside direct I/O by the same number of threads, and beside both of mmap's "
        "advices.", ("direct", "mmap", "mmap-random")),
    Experiment(
        "lriot-writes", _DI, "Random reads and writes, half and half", "figure 4", "random-io",
        f"{_SMALL} --latency off --touches 100000 --write-percent 50", "threads",
        _points("--threads", 1, 4, 16), "somewhat more than twice mmap's", 1.0, (),
        "Theirs only writes. A page that is written costs us a flush of the other processor's "
        "translations."),
    Experiment(
        "searches", _DI, "Searches in a sorted vector, a map and a hash map", "figure 6",
        "map-lookup", f"{_SMALL} --threads 4 --touches 20000", "structure",
        _points("--structure", "vector", "map", "hash"), "several times mmap", 1.0, (),
        "As theirs, with 16 byte records."),
    Experiment(
        "kmers", _DI, "Reads told by k-mers, two indices", "figures 7 to 9", "kmers",
        f"{_SMALL} --threads 16 --reads 2000", "index", _points("--index", "hash", "two-level"),
        "4 times mmap (hash), 2.7 to 4.92 times (two-level)", 4, ("hash",),
        "Theirs had 16 GiB for 293 GB, on a machine whose mmap did not scale past 16 threads; "
        "today's kernel without readahead is a better rival."),
    Experiment(
        "bfs-external", _DI, "Breadth-first search, everything in files", "figure 12", "bfs",
        "--scale 18 --fully-external --budget 32M", "threads", _points("--threads", 1, 4, 16),
        "up to 7.44 times mmap", 1.0, (),
        "Theirs writes three files of algorithm data on slow flash. The factor over mmap was that "
        "kernel's, which locked the whole address space at each fault."),
    Experiment(
        "half-memory", _DI, "Half the memory", "figures 11 and 13", "bfs",
        "--scale 19 --threads 4", "budget, % of the edges",
        _pairs(("100", "--budget 128M"), ("75", "--budget 96M"), ("50", "--budget 64M")),
        "half the memory costs 23 % more time", 0, (),
        "The time beside that of all memory: see the rates of a column."),
)
