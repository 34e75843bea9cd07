"""heaps: what the papers have in a heap that outlives the program."""

from experiment import (BOOST, DI, MMAP, OWN_HEAPS, SMALL, UMAP, WITH_MALLOC, YCSB_MIXES,
                        Experiment, points)

YCSB_HEAP = Experiment(
    "ycsb-heap", UMAP, "YCSB on a hash table in a persistent heap", "figure 3c", "ycsb",
    f"{SMALL} --table heap --mix A --touches 30000 --latency off", "threads",
    points("--threads", 4, 64, paper={"4": "1.3", "64": "1.9"}),
    "1.3 times mmap with 4 executors, 1.9 times with 64", 1.9, ("64",),
    "Nearer to N-Store, whose records lie in a pool of memory. mmap has Boost's hash tables in "
    "a file of Boost.Interprocess, of whose records about a quarter straddle two pages; "
    "Outcore's lie within one; \"our heap\" is Outcore's over the kernel's mapping (`--allocator "
    "own`), so that only who brings pages in differs. malloc has them in plain memory, without "
    "limit.", (*WITH_MALLOC, *OWN_HEAPS))

YCSB_HEAP_MIXES = Experiment(
    "ycsb-heap-mixes", UMAP, "All mixes of YCSB on a hash table in a persistent heap", "figure 3c",
    "ycsb", "--size 64M --budget 16M --table heap --latency off --threads 16", "mix", YCSB_MIXES,
    "no figure by mix; 1.3 to 1.9 times mmap by all", 1.3, (),
    "The mixes are those above, and the tables too. mmap without advice reads ahead what nobody "
    "asks for.")

GRAPH_CONSTRUCT = Experiment(
    "graph-construct", UMAP, "A graph built edge by edge in a persistent heap", "figure 8",
    "graph-construct", "--scale 17 --budget 48M", "threads",
    points("--threads", 1, 2, paper={"2": "5 to 12"}),
    "5 to 12 times mmap, by Metall on UMap with pages of 16 to 256 KiB", 5, (),
    "Theirs has large pages and writes to an NVMe disk, where all of it takes hundreds of GB; "
    "here all write to one fast disk, by pages of 4 KiB. mmap is Boost.Interprocess. Only who "
    "brings pages in differs between outcore and \"our heap\", which is Outcore's over the "
    "kernel's mapping (`--allocator own`), and between mmap and Boost's heap in a region "
    "(`--allocator boost`).", (*WITH_MALLOC, *OWN_HEAPS, BOOST))

KMERS_HEAP = Experiment(
    "kmers-heap", DI, "LMAT's index of two levels in a persistent heap",
    "section 4.1, figures 8 and 9", "kmers",
    f"{SMALL} --table heap --reads 500", "threads",
    points("--threads", 4, 16, paper={"16": "3.3 to 3.8"}),
    "4 times mmap for look-ups in two levels; 3.3 to 3.8 times where reads are classified", 3.8, (),
    "As LMAT keeps it, in a heap over a mapped file: an array of lists, each a vector whose "
    "entries the heap allocated. mmap has Boost's vectors in a file of Boost.Interprocess, "
    "Outcore the same in a PersistentHeap, which \"our heap\" is over the kernel's mapping "
    "(`--allocator own`).", (*MMAP, *OWN_HEAPS))
