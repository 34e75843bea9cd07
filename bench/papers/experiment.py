"""experiment: a figure or table of a paper, as runs of a command: a row for each point of its axis.

What the paper says is a ratio over mmap, or beside what else it names, and stands beside ours.
"""

from dataclasses import dataclass

FAST, DISK, FAR = "fast", "disk", "far"  # a device in memory; a disk; a server's memory
CEPH = "{ceph}"  # among a point's options: the URI of an image that is not there
GENOMES = "{genomes}"  # among the options of all points: a folder of real genomes
# Who runs it: `outcore bench`; a program of bench/static, by occ++ and by the plain compiler, whose
# points are budgets in percent of its data; the programs of bench/rivals; both, of the same reads;
# `outcore bench` with settings that are chosen from what it was seen to do (decision_tree.py).
BENCH, STATIC, RIVALS, KRAKEN, BY_HAND = "bench", "static", "rivals", "kraken2", "by hand"


@dataclass(frozen=True)
class Point:
    label: str  # on the axis
    options: tuple[str, ...]  # {folder}: where data is made; CEPH: an image
    paper: str = ""  # what the paper has there, if it tells a figure
    variables: tuple[tuple[str, str], ...] = ()  # of the environment
    servers: int = 0  # far memory of so many, each with room for its share; 0: of one, with a name


UMAP, DI, DLM, NVMALLOC, PMAP = "UMap", "DI-MMAP", "DLM", "NVMalloc", "pMAP"
MIB = 2**20
MMAP = ("mmap", "mmap-random")
# Plain memory, without limit: what the data would be in if it fitted.
WITH_MEMORY, WITH_MALLOC = (*MMAP, "dram"), (*MMAP, "malloc")
SMALL = "--size 256M --budget 64M"


@dataclass(frozen=True)
class Experiment:
    name: str
    paper: str
    title: str
    place: str  # in the paper
    workload: str  # "": the first word of each point's options
    options: str
    axis: str
    points: tuple[Point, ...]
    claim: str  # in the paper's words and figures
    asked: float  # at the points of its claim; what of is told by `shows`. 0: no claim
    at: tuple[str, ...]  # those points; (): all
    words: str  # why ours is not theirs
    rivals: tuple[str, ...] = MMAP  # columns beside `outcore`
    # rates: ours over the rivals' best (or over `beside`), at least. slower: time over that of
    # plain memory, at most. spread: of the times, at most. traffic: `keys`' bytes over
    # `base_bytes`, at most. figures: lines of figures, which say themselves what is asked. reuse,
    # tree: what reuse.py draws, of which nothing is asked.
    shows: str = "rates"
    on: str = FAST
    # A column, and a point ("": each point by itself). If it is not mmap, the claim is over this.
    beside: tuple[str, str] = ("mmap", "")
    keys: tuple[tuple[str, str], ...] = (("", "rate"),)  # what of a run's line, with its name
    base_bytes: int = 0
    by: str = BENCH
    repeats: int = 0  # 0: as the table is asked to
    limit_seconds: int = 20  # of a run


# Columns that are not the memory of their name by default settings.
LARGE_PAGES, HUGE_PAGES = "outcore, 64 KiB", "outcore, 256 KiB"
PARTS = "outcore, parts"
HOT, HALF_HOT, NO_HOT = "outcore, hot 75 %", "outcore, hot 50 %", "outcore, hot none"
BOOST = "outcore, Boost's heap"
# Our heap over the kernel's mapping: what differs from outcore is who brings pages in.
OWN_HEAPS = tuple(f"{memory}, our heap" for memory in MMAP)
COLUMNS = {
    BOOST: ("--memory", "outcore", "--allocator", "boost"),
    **{own: ("--memory", memory, "--allocator", "own") for own, memory in zip(OWN_HEAPS, MMAP)},
    HOT: ("--memory", "outcore", "--policy", "di-mmap:hot=75%"),
    HALF_HOT: ("--memory", "outcore", "--policy", "di-mmap:hot=50%"),
    NO_HOT: ("--memory", "outcore", "--policy", "di-mmap:hot=0%"),
    LARGE_PAGES: ("--memory", "outcore", "--page", "64k"),
    HUGE_PAGES: ("--memory", "outcore", "--page", "256k"),
    PARTS: ("--memory", "outcore", "--share", "off"),
}


def options_of(column):
    return COLUMNS.get(column, ("--memory", column))


def is_ours(column):
    return column.startswith("outcore")


def kernels(*releases, paper=()):
    """A point for each release, of whose features Outcore uses no newer ones."""
    papers = (*paper, *[""] * (len(releases) - len(paper)))
    newest = releases[0]
    return tuple(Point(release, (), told,
                       () if release == newest else (("OUTCORE_KERNEL", release),))
                 for release, told in zip(releases, papers))


def points(option, *values, paper=None):
    """`paper`: what it has at some of the values, by label."""
    told = paper or {}
    return tuple(Point(str(value), (option, str(value)), told.get(str(value), ""))
                 for value in values)


def pairs(*pairs, paper=None):
    told = paper or {}
    return tuple(Point(label, tuple(options.split()), told.get(label, ""))
                 for label, options in pairs)


def with_paper(point, paper):
    return Point(point.label, point.options, paper)


def shares(*percents, paper=None):
    told = paper or {}
    return tuple(Point(str(percent), ("--budget", f"{percent}%"), told.get(str(percent), ""))
                 for percent in percents)


YCSB_MIXES = pairs(*((f"{mix} {distribution}", f"--mix {mix} --distribution {distribution} "
                      f"--touches {2000 if mix == 'E' else 30000}")
                     for distribution in ("zipf", "uniform") for mix in "ABCDEF"))
