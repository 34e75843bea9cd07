"""settings: the papers' figures of what a setting does: pages, buffers, queues, marks, files."""

from experiment import DI, UMAP, Experiment, Point, pairs, points

_TOUCHES = "--size 256M --budget 64M --latency off --touches 100000"


def _marks(*pairs_of_marks):
    return tuple(Point(f"{high} to {low}", (), "", (("OUTCORE_HIGH_WATERMARK", str(high)),
                                                    ("OUTCORE_LOW_WATERMARK", str(low))))
                 for high, low in pairs_of_marks)


def _kernels(newest, *older):
    return (Point(newest, (), "1"),
            *(Point(release, (), "0.756" if release == older[0] else "",
                    (("OUTCORE_KERNEL", release),)) for release in older))


SETTINGS = (
    Experiment(
        "sort-buffer", UMAP, "Sort in less and less memory", "section 6", "sort",
        "--size 256M --threads 4", "budget, % of the data",
        pairs(("100", "--budget 256M"), ("50", "--budget 128M"), ("25", "--budget 64M")),
        "buffers of a part of the data; no figure for the sort alone", 0, (),
        "mmap gets the same memory at each point."),
    Experiment(
        "sort-pages", UMAP, "Sort by page size", "section 6", "sort",
        "--size 256M --budget 128M --threads 4", "page",
        points("--page", "4k", "16k", "64k", "256k", "1M"),
        "large pages for what is used again; no figure for the sort alone", 0, (),
        "By pages of 4 KiB Outcore brings in and writes back many at a time where that pays, so "
        "that larger pages gain less than theirs.", rivals=(), beside=("outcore", "4k")),
    Experiment(
        "bfs-pages", UMAP, "Breadth-first search by page size", "figure 5b", "bfs",
        "--scale 19 --budget 64M --threads 4", "page",
        points("--page", "4k", "16k", "32k", "64k", "256k", "512k"),
        "six times as fast by pages of 32 KiB as by 4, as fast up to 256 KiB, slower by 512", 0, (),
        "What one miss brings in is chosen while it runs: by 4 KiB little is lost of what theirs "
        "gained.", rivals=(), beside=("outcore", "4k")),
    Experiment(
        "graph-pages", UMAP, "A graph built in a heap, by page size", "figure 8",
        "graph-construct", "--scale 17 --budget 48M --threads 2", "page",
        points("--page", "4k", "16k", "64k", "256k", "512k"),
        "5 to 12 times mmap by pages of 16 to 256 KiB, less by 512", 5, ("16k", "64k", "256k"),
        "Their mmap is Metall's on a kernel of 2019; ours is Boost.Interprocess on a kernel that "
        "reads ahead from a disk in memory.", ("mmap",)),
    Experiment(
        "graph-files", UMAP, "A graph built in one file, and in many", "section 7.2",
        "graph-construct", "--scale 17 --budget 48M --threads 2", "store",
        (Point("one file", ()),
         *(Point(label, ("--store", f"sparse:{{folder}}/graph?segment={segment}"))
           for label, segment in (("sparse, 64 MiB a file", "64M"), ("sparse, 2 MiB", "2M"),
                                  ("sparse, 64 KiB", "64k")))),
        "1.17 to 1.70 times as fast in 32 or 1024 files as in one, by pages of 16 to 64 KiB", 0, (),
        "Many files are faster where writers of one wait for its lock. Outcore writes past the "
        "page cache, and joins what lies side by side, so that two processors do not wait for it; "
        "what each further file costs is seen.", rivals=(), beside=("outcore", "one file")),
    Experiment(
        "watermarks", UMAP, "Watermarks", "figure 4", "random-io",
        f"{_TOUCHES} --write-percent 50 --threads 16",
        "percent of the budget",
        _marks((98, 97), (99, 95), (90, 80), (75, 50)),
        "eviction between 99 and 95 % of the buffer helps LMAT; no figure for writes", 0, (),
        "What is kept free is memory that holds nothing; where each touch is as likely as any "
        "other, a quarter more or less of it is not seen.", rivals=(),
        beside=("outcore", "98 to 97")),
    Experiment(
        "kernels", DI, "Pages unmapped together, and one by one; older kernels", "figure 5",
        "random-io", f"{_TOUCHES} --threads 16",
        "features of Linux", _kernels("6.13", "6.8", "6.1", "5.15"),
        "0.756 of the rate if each page that leaves is flushed from the processors' tables by "
        "itself", 0, (),
        "By features of 6.13, the newest that is asked for, a batch of pages leaves by one call "
        "and one flush of the other processors' translations (process_madvise on the own process); "
        "by those of 6.8 and before each piece of neighbours by a call and a flush of its own. "
        "Theirs has 256 threads on 32 cores.", rivals=(), beside=("outcore", "6.13")),
    Experiment(
        "write-limit", UMAP, "Writers of one device at a time", "section 3.3", "random-io",
        f"{_TOUCHES} --write-percent 50 --threads 16",
        "write_concurrency",
        tuple(Point(label, ("--store", f"file:{{folder}}/words?write_concurrency={limit}"))
              for label, limit in (("no limit", 0), ("1", 1), ("2", 2), ("8", 8))),
        "groups of threads that fill and write back, each of a size of its own; no figure", 0, (),
        "For devices that slow down under many writers. The disk in memory does not, and one "
        "writer keeps up with two processors.", rivals=(), beside=("outcore", "no limit")),
    Experiment(
        "hot-queue", DI, "The hot queue", "figure 13", "bfs",
        "--scale 18 --fully-external --budget 16M --threads 16", "policy",
        pairs(("none", "--policy di-mmap:hot=0%"), ("50 %", "--policy di-mmap:hot=50%"),
              ("75 %", "--policy di-mmap:hot=75%"), ("by default", "")),
        "1.48 times as fast with 75 % of the buffer for hot pages as with none", 1.48, ("75 %",),
        "Their buffer is a seventh of the data and more, on slow flash, where a miss costs ten "
        "times as much beside the rest of the work. \"by default\" is the policy that Outcore "
        "takes by itself.", rivals=(), beside=("outcore", "none")),
    Experiment(
        "lriot-processes", DI, "Random reads of several processes", "section 6.2", "random-io",
        f"{_TOUCHES} --threads 4", "processes",
        points("--processes", 1, 2, 4),
        "LRIOT has processes and threads; figures are by threads", 0, (),
        "Each process reads a slice of its own, with its part of the budget.",
        ("direct", "mmap", "mmap-random")),
    Experiment(
        "components", DI, "Connected components", "section 5.2", "components",
        "--scale 18 --budget 8M", "threads", points("--threads", 4, 16),
        "no figure: another program of the same framework", 0, (),
        "All edges in order, again until nothing changes."),
    Experiment(
        "pagerank", DI, "PageRank", "section 5.2", "pagerank", "--scale 18 --budget 8M", "threads",
        points("--threads", 4, 16), "no figure: another program of the same framework", 0, (),
        "All edges in order, once a step; the ranks are in plain memory."),
)
