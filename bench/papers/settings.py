"""settings: the papers' figures of what a setting does: pages, buffers, queues, marks, files."""

from experiment import (DI, MMAP, UMAP, WITH_MEMORY, Experiment, Point, kernels, pairs, points,
                        with_paper)

_EXTERNAL = pairs(("4", "--threads 4"), ("16", "--threads 16"),
                  ("16, external", "--threads 16 --fully-external"))
_PROCESSES = pairs(*((f"{processes} x {threads}",
                     f"--processes {processes} --threads {threads}")
                     for processes, threads in ((1, 4), (2, 4), (4, 4), (2, 64), (4, 64))))
_PAGES_OF_CLAIM = ("16k", "64k", "256k")
_TOUCHES = "--size 256M --budget 64M --latency off --touches 50000"


def _marks(*pairs_of_marks):
    return tuple(Point(f"{high} to {low}", (), "", (("OUTCORE_HIGH_WATERMARK", str(high)),
                                                    ("OUTCORE_LOW_WATERMARK", str(low))))
                 for high, low in pairs_of_marks)


SETTINGS = (
    Experiment(
        "sort-buffer", UMAP, "Sort in less and less memory", "section 6", "sort",
        "--size 128M --threads 4", "budget, % of the data",
        pairs(("100", "--budget 128M"), ("75", "--budget 96M"), ("50", "--budget 64M"),
               ("25", "--budget 32M")),
        "buffers of a part of the data; no figure for the sort alone", 0, (),
        "mmap gets the same memory at each point. With room for all of the data the kernel is as "
        "fast; with less, what Outcore brings in and writes back at a time pays."),
    Experiment(
        "sort-pages", UMAP, "Sort by page size", "section 6", "sort",
        "--size 256M --budget 128M --threads 4", "page",
        points("--page", "4k", "16k", "64k", "256k", "1M", "8M"),
        "by pages of 8 MiB; much larger ones write back too much; no figure", 0, (),
        "By pages of 4 KiB Outcore brings in and writes back many at a time where that pays, so "
        "that larger pages gain less than theirs. Theirs moves what the page size says at each "
        "fault.", rivals=(), beside=("outcore", "4k")),
    Experiment(
        "bfs-pages", UMAP, "Breadth-first search by page size", "figure 5b", "bfs",
        "--scale 19 --budget 64M --threads 4", "page",
        points("--page", "4k", "16k", "32k", "64k", "256k", "512k",
               paper={"4k": "1", "32k": "6", "256k": "6"}),
        "six times as fast by pages of 32 KiB as by 4, as fast up to 256 KiB, slower by 512", 0, (),
        "What one miss brings in is chosen while it runs: by 4 KiB little is lost of what theirs "
        "gained. Theirs brings in at a fault what the page size says.", rivals=(),
        beside=("outcore", "4k")),
    Experiment(
        "graph-pages", UMAP, "A graph built in a heap, by page size", "figure 8",
        "graph-construct", "--scale 17 --threads 2", "page",
        (*(Point(page, ("--page", page, "--budget", "56M"),
                 "5 to 12" if page in _PAGES_OF_CLAIM else "")
           for page in ("4k", *_PAGES_OF_CLAIM, "512k")),
         *(Point(f"{page}, 40 MiB", ("--page", page, "--budget", "40M"))
           for page in ("4k", "16k"))),
        "5 to 12 times mmap by pages of 16 to 256 KiB, less by 512", 5, _PAGES_OF_CLAIM,
        "Their mmap is Metall's on a kernel of 2019; ours is Boost.Interprocess on a kernel that "
        "reads ahead from a disk in memory. 56 MiB are as much as the heap has, 40 two thirds of "
        "it: an edge is added to a list that may be anywhere, so that then a large page goes in "
        "and out for nearly each. What the default of 4 KiB loses to larger pages where all fits "
        "is little."),
    Experiment(
        "bfs-kernels", UMAP, "Breadth-first search by features of older kernels", "figure 6b",
        "bfs", "--scale 19 --budget 64M --threads 4", "features of Linux",
        kernels("6.13", "6.8", "6.1", "5.15"),
        "faster than mmap on Linux 3.10, 5.1 and 5.6", 1.0, (),
        "Theirs are three kernels on three machines; ours one, of which Outcore uses no more than "
        "the older ones have. mmap has the newest."),
    Experiment(
        "graph-files", UMAP, "A graph built in one file, and in many", "figure 8",
        "graph-construct", "--scale 17 --budget 40M --threads 2", "store",
        tuple(Point(label, options, told) for label, options, told in (
            ("one file", (), "1"),
            *((f"{segment} a file",
               ("--store", f"sparse:{{folder}}/graph?segment={segment}"), told)
              for segment, told in (("64M", ""), ("2M", "1.17 to 1.70"),
                                    ("64k", "1.17 to 1.70"))))),
        "1.17 to 1.70 times as fast in 32 or 1024 files as in one, by pages of 16 to 64 KiB", 1.17,
        ("2M a file", "64k a file"),
        "Many files are faster where writers of one wait for its lock, as may well be with 96 "
        "processors. Outcore writes past the page cache, and joins what lies side by side, so that "
        "two processors hardly wait for it; what each further file costs is seen, 2, 30 and 900 "
        "files here.", rivals=(), beside=("outcore", "one file")),
    Experiment(
        "watermarks", UMAP, "Watermarks", "figure 4a", "sort",
        "--size 128M --budget 64M --threads 192", "percent of the budget",
        tuple(with_paper(point, told) for point, told in zip(
            _marks((90, 70), (98, 97), (99, 95)), ("1", "", "1.11"))),
        "a sort of 240 threads gains another 1.11 times if pages leave between 99 and 95 % of the "
        "buffer; LMAT nothing", 1.11, ("99 to 95",),
        "Beside UMap's default, 90 to 70, as the text names no other; 98 to 97 is Outcore's. A "
        "tenth more of the buffer holds pages, where half of the data has room.", rivals=(),
        beside=("outcore", "90 to 70")),
    Experiment(
        "kernels", DI, "Pages unmapped together, and one by one; older kernels", "figure 5",
        "random-io", f"{_TOUCHES} --threads 16",
        "features of Linux", kernels("6.13", "6.8", "6.1", "5.15", paper=("1", "0.756")),
        "0.756 of the rate if each page that leaves is flushed from the processors' tables by "
        "itself", 0, (),
        "By features of 6.13, the newest that is asked for, a batch of pages leaves by one call "
        "and one flush of the other processors' translations (process_madvise on the own process); "
        "by those of 6.8 and before each piece of neighbours by a call and a flush of its own. "
        "Theirs has 256 threads on 32 cores.", rivals=(), beside=("outcore", "6.13")),
    Experiment(
        "write-limit", UMAP, "Writers of one device at a time", "section 3.1.1", "random-io",
        f"{_TOUCHES} --write-percent 50 --threads 16",
        "write_concurrency",
        tuple(Point(label, ("--store", f"file:{{folder}}/words?write_concurrency={limit}"))
              for label, limit in (("no limit", 0), ("1", 1), ("2", 2), ("8", 8))),
        "groups of threads that fill and write back, each of a size of its own; no figure", 0, (),
        "For devices that slow down under many writers. The disk in memory does not, and one "
        "writer keeps up with two processors.", rivals=(), beside=("outcore", "no limit")),
    Experiment(
        "event-batches", UMAP, "Messages that an event thread takes at a time", "section 3.1.1",
        "random-io", f"{_TOUCHES} --threads 64 --delivery messages", "messages at most",
        tuple(Point(label, (), "", (("OUTCORE_EVENT_BATCH", label),) if label.isdigit() else ())
              for label in ("1", "4", "16", "by default")),
        "a worker is handed 16 items at a time where scheduling costs more than an item; no figure",
        0, (),
        "An event thread takes the messages that wait, so that a batch grows with the load by "
        "itself, up to 8 by default: what is left is for the other thread. 64 threads fault, so "
        "that some always wait.", rivals=(), beside=("outcore", "1")),
    Experiment(
        "hot-queue", DI, "The hot queue", "figure 13", "bfs",
        "--scale 17 --fully-external --asynchronous --budget 8M --threads 16", "policy",
        pairs(("none", "--policy di-mmap:hot=0%"), ("50 %", "--policy di-mmap:hot=50%"),
              ("75 %", "--policy di-mmap:hot=75%"), ("by default", ""),
              paper={"none": "1", "75 %": "1.48"}),
        "1.48 times as fast with 75 % of the buffer for hot pages as with none", 1.48, ("75 %",),
        "Their buffer is a quarter of the data, on slow flash, where a miss costs ten "
        "times as much beside the rest of the work. \"by default\" is the policy that Outcore "
        "takes by itself.", rivals=(), beside=("outcore", "none")),
    Experiment(
        "lriot-processes", DI, "Random reads of several processes", "section 5.1", "random-io",
        f"{_TOUCHES} --overlap", "processes x threads", _PROCESSES,
        "LRIOT has processes and threads; figures are by threads", 0, (),
        "All processes touch all of the data: Outcore's have one buffer, as mmap's have one page "
        "cache. A page that leaves the buffer is a hole in its memory, most often a call for each, "
        "where the kernel's own reclaim takes many at once.", ("direct", *MMAP)),
    *(Experiment(
        f"lriot-processes-{name}", DI, f"{title} of several processes", "section 5.1", "random-io",
        f"{_TOUCHES} --overlap --write-percent {percent}", "processes x threads", _PROCESSES,
        "LRIOT has processes and threads; figures are by threads", 0, (),
        f"What one process writes the others see at once. {words}")
      for name, title, percent, words in (
          ("mixed", "Random reads and writes", 50,
           "Beside what reads pay, a written page is protected in all processes, and stored by "
           "one of them."),
          ("writes", "Random writes", 100,
           "All pages that leave are such."))),
    Experiment(
        "components", DI, "Connected components", "section 4.2", "components",
        "--scale 17 --budget 4M", "threads", _EXTERNAL,
        "no figure: another work of the framework that its search is of", 0, (),
        "All edges in order, again until nothing changes; \"external\": what is kept for each "
        "vertex is in files, too. The kernel's readahead suits edges that are read in "
        "order.", WITH_MEMORY),
    Experiment(
        "pagerank", DI, "PageRank", "section 4.2", "pagerank", "--scale 17 --budget 4M", "threads",
        _EXTERNAL, "no figure: another work of the framework that its search is of", 0, (),
        "All edges in order, once a step; ranks are in plain memory, or with \"external\" in "
        "files, too. What is said of components is true here.", WITH_MEMORY),
)
