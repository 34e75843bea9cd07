"""experiments: what the papers measured, as commands that fit a small machine."""

from experiment import (CEPH, DI, DISK, DLM, FAR, HUGE_PAGES, KRAKEN, LARGE_PAGES, MIB, NVMALLOC,
                        PARTS, UMAP, Experiment, Point, pairs, points, shares, with_paper)
from s3d import S3D
from settings import SETTINGS
from static_programs import STATIC_PROGRAMS

_SMALL = "--size 256M --budget 64M"

_COMMANDS = (
    Experiment(
        "sort", UMAP, "Sort of more than memory", "figure 3a", "sort",
        "--size 256M --budget 128M", "threads", points("--threads", 1, 4, 48, 192),
        "1.15 to 1.22 times mmap with 48 to 240 threads", 1.15, ("48",),
        "Theirs sorts 500 GB on 96 cores, where mmap's threads wait for each other in the kernel. "
        "Here two processors share the work, and what counts is how much is read again."),
    Experiment(
        "bfs", UMAP, "Breadth-first search, edges in a file", "figure 3b", "bfs",
        "--scale 19 --budget 64M", "threads", points("--threads", 1, 4, 16, 96),
        "up to 1.3 times mmap at high concurrency", 1.3, ("96",),
        "Their graph has 2^31 vertices on NVMe drives. Ours fits a small machine: its vertices "
        "stay in memory of their own, its edges are twice the budget."),
    Experiment(
        "bfs-buffer", UMAP, "Breadth-first search in less and less memory", "figure 5a", "bfs",
        "--scale 19 --threads 4", "budget, % of the edges",
        pairs(("100", "--budget 128M"), ("50", "--budget 64M"), ("25", "--budget 32M"),
               ("12", "--budget 16M")),
        "more buffer, less time, mostly between 10 and 30 %", 1.0, (),
        "As theirs, but that mmap gets the same memory at each point."),
    Experiment(
        "ycsb", UMAP, "YCSB on a table of records", "figure 3c", "ycsb",
        f"{_SMALL} --mix A --touches 5000 --latency off", "threads",
        points("--threads", 4, 16, 64),
        "1.3 times mmap with 4 executors, 1.9 times with 64", 1.9, ("64",),
        "Theirs is the database N-Store, with 384 GB of records and transactions; ours is a table "
        "of records and its index, four records a page. Half of the operations write."),
    Experiment(
        "lmat", UMAP, "Reads told by k-mers", "figure 3d", "kmers",
        f"{_SMALL} --reads 1000", "threads", points("--threads", 1, 4, 16),
        "up to 1.36 times mmap", 1.36, ("16",),
        "Their database is LMAT's, of 635 GB and of real genomes; ours is made up, with the same "
        "kind of index, and known answers."),
    Experiment(
        "images", UMAP, "Medians along vectors through images", "umap-apps", "images",
        f"{_SMALL}", "threads", points("--threads", 1, 4, 16),
        "no figure: the application comes with UMap", 0, (),
        "A vector touches another page in nearly every image: there is nothing to bring in ahead."),
    Experiment(
        "graph-construct", UMAP, "A graph built edge by edge in a persistent heap", "figure 8",
        "graph-construct", "--scale 17 --budget 48M", "threads", points("--threads", 1, 2),
        "5 to 12 times mmap, by Metall on UMap with pages of 16 to 256 KiB", 5, (),
        "Theirs has large pages and writes to a network file system; here both write to one fast "
        "disk, by pages of 4 KiB.", ("mmap",)),
    Experiment(
        "lriot-reads", DI, "Random reads", "figure 3", "random-io",
        f"{_SMALL} --latency off --touches 100000", "threads",
        points("--threads", 1, 4, 16, 128),
        "87 % of direct I/O with 128 threads; 2.4 times mmap", 0.87, ("128",),
        "Ours is beside direct I/O by the same number of threads, and beside both of mmap's "
        "advices.", ("direct", "mmap", "mmap-random")),
    Experiment(
        "lriot-writes", DI, "Random reads and writes, half and half", "figure 4", "random-io",
        f"{_SMALL} --latency off --touches 100000 --write-percent 50", "threads",
        points("--threads", 1, 4, 16), "somewhat more than twice mmap's", 1.0, (),
        "Theirs only writes. A page that is written costs us a flush of the other processor's "
        "translations."),
    Experiment(
        "searches", DI, "Searches in a sorted vector, a map and a hash map", "figure 6",
        "map-lookup", f"{_SMALL} --threads 4 --touches 20000", "structure",
        points("--structure", "vector", "map", "hash"), "several times mmap", 1.0, (),
        "As theirs, with 16 byte records."),
    Experiment(
        "kmers", DI, "Reads told by k-mers, two indices", "figures 7 to 9", "kmers",
        f"{_SMALL} --threads 16 --reads 1000", "index", points("--index", "hash", "two-level"),
        "4 times mmap (hash), 2.7 to 4.92 times (two-level)", 4, ("hash",),
        "Theirs had 16 GiB for 293 GB, on a machine whose mmap did not scale past 16 threads; "
        "today's kernel without readahead is a better rival."),
    Experiment(
        "kmers-processes", DI, "Reads told by processes on one database", "figures 7 to 9",
        "kmers", f"{_SMALL} --threads 1 --index two-level --reads 1000", "processes",
        points("--processes", 1, 2, 4),
        "4 to 4.92 times mmap, of processes that share one buffer", 4, ("4",),
        "Theirs has a process for each sample, up to 64 on one database; ours a part of the reads "
        "each. Outcore's processes have one buffer of the whole budget, as mmap's have one page "
        "cache."),
    Experiment(
        "kmers-pinned", DI, "Reads told by k-mers: the top level pinned, and lists of pages",
        "section 4.1; UMap, section 3.6", "kmers",
        f"{_SMALL} --threads 4 --index two-level --reads 1000", "told beforehand",
        pairs(("as it is", ""), ("top pinned", "--pin-top"),
               ("prefetch lists", "--prefetch-lists"), ("both", "--pin-top --prefetch-lists")),
        "LMAT gained by a top level that is pinned; no figure", 1.0, ("top pinned",),
        "The rate of each beside Outcore's as it is. The rivals are told as much: the top level is "
        "locked by mlock, and each page of a list gets MADV_WILLNEED.",
        rivals=("mmap-random",), beside=("outcore", "as it is")),
    Experiment(
        "kmers-kraken2", DI, "The same reads, told by kraken2", "section 4.1", "kmers",
        "--size 64M --budget 16M --threads 4 --reads 2000", "", (Point("", ()),),
        "no figure: LMAT's answers are compared in its own paper", 0, (),
        "Genomes, taxonomy and reads as files (`--export FOLDER`), of which kraken2 makes a "
        "database of its own, with each 20-mer for itself. Its table has 32 bits a k-mer, and may "
        "confuse two.", rivals=(), shows="figures", by=KRAKEN, repeats=1),
    Experiment(
        "bfs-semi", DI, "Breadth-first search, edges in a file", "figure 10", "bfs",
        "--scale 19 --budget 64M", "threads", points("--threads", 4, 32),
        "0.57 of plain memory; mmap is near it with a helper that calls MADV_DONTNEED every ten "
        "seconds, and far below without", 1.0, (),
        "Beside the best of mmap: with either advice, and with such a helper, every tenth of a "
        "second here, as runs are shorter (`mmap-dontneed`, with MADV_RANDOM). Plain memory is "
        "nearer where a search does more than to look at each edge once.",
        ("mmap", "mmap-random", "mmap-dontneed", "dram")),
    Experiment(
        "bfs-external", DI, "Breadth-first search, everything in files", "figure 12", "bfs",
        "--scale 18 --fully-external --budget 32M", "threads", points("--threads", 1, 4, 16),
        "up to 7.44 times mmap", 1.0, (),
        "Theirs writes three files of algorithm data on slow flash. The factor over mmap was that "
        "kernel's, which locked the whole address space at each fault. The helper drops the edges "
        "alone, as theirs: of what is written MADV_DONTNEED could lose bytes.",
        ("mmap", "mmap-random", "mmap-dontneed")),
    Experiment(
        "half-memory", DI, "Half the memory", "figures 11 and 13", "bfs",
        "--scale 19 --threads 4", "budget, % of the edges",
        pairs(("100", "--budget 128M"), ("75", "--budget 96M"), ("50", "--budget 64M")),
        "half the memory costs 23 % more time", 0, (),
        "The rate of each beside Outcore's with all the memory.", beside=("outcore", "100")),
    *(Experiment(
        name, DLM, title, place, workload, f"{options} --threads 1", "local memory / data, %",
        shares(least, 25, 50, 75, 100), claim, asked, (str(least),), words,
        rivals=("dram", LARGE_PAGES), shows="slower", on=FAR, keys=keys, limit_seconds=10)
      for name, title, place, workload, options, least, asked, keys, claim, words in (
          ("stream", "STREAM", "figures 6 and 7", "stream", "--size 96M --passes 2", 8, 10,
           (("COPY", "copy_mean_mib_s"), ("TRIAD", "triad_mean_mib_s")),
           "with 8 % local less than 10 times plain memory by pages of 64 KiB and more, 50 to 70 "
           "times by 4 to 16 KiB",
           "Their plain memory gave 3 GB/s and their network 1.2; here plain memory gives some "
           "ten times what a Redis server moves on the same two processors. By readahead pages of "
           "4 KiB take at most about twice as long as those of 64 KiB, where theirs took five."),
          ("himeno", "Himeno", "figure 11", "jacobi", "--size 96M --passes 2", 10, 5,
           (("", "rate"),),
           "with 10 % local 5 times plain memory by pages of 1 MiB, 35 times by 4 KiB",
           "Theirs has 1.9 GB on a node of eight processors, and a server with processors of its "
           "own. Ours has 96 MB, and the server works on the same two processors as the program."),
          ("ft", "NPB FT", "figure 8", "ft", "--size 80M --passes 1", 8, 10, (("", "rate"),),
           "10 to 20 times plain memory in the worst case, of IS, CG and FT; larger pages are "
           "better",
           "Theirs is class B, 1.7 GB, where 8 % is 136 MB; ours fits 6 MiB. Lines of the third "
           "direction touch a page of each of 128 planes: of 64 KiB these do not fit, and are read "
           "again for each line."),
          ("is", "NPB IS", "figure 9", "is", "--class A --passes 2", 8, 10, (("", "rate"),),
           "10 to 20 times plain memory in the worst case, of IS, CG and FT; linear in the local "
           "share",
           "Theirs is class B, three arrays of 384 MB without buckets. Ours puts keys into some "
           "500 buckets, of each of which a page is filled at a time: of 64 KiB these are half of "
           "the data."),
          ("cg", "NPB CG", "figure 10", "cg", "--class A --passes 1", 8, 10, (("", "rate"),),
           "10 to 20 times plain memory in the worst case, of IS, CG and FT; no loss above 30 %, "
           "as 100 of 510 MB are what it works on",
           "Theirs is class B, with arrays that are used while the matrix is made. Ours has the "
           "matrix and five vectors alone, and reads all of it in each of 25 steps, so that what "
           "is not local is fetched each time."))),
    *(Experiment(
        f"swap-{name}", DLM, f"{title} beside the kernel's swap", "section I", workload,
        "--size 64M --passes 2 --threads 1", "local memory / data, %", shares(15, 50),
        "ten times as fast as swap on a disk with 15 % local", 10, ("15",), words,
        rivals=("swap",), on=FAR, beside=("swap", ""))
      for name, title, workload, words in (
          ("stream", "STREAM", "stream",
           "Their disk turned, and sought for 4 to 8 ms; that of a virtual machine answers in "
           "less than a tenth of one, and sooner than a server by TCP. What is gained is that more "
           "than a page comes at a time, and ahead."),
          ("himeno", "Himeno", "jacobi",
           "The disk is the same as above. The loop touches fourteen arrays side by side, which "
           "leaves fewer pages of each to come ahead."))),
    Experiment(
        "spread", DLM, "Five runs of Himeno", "section I", "jacobi",
        "--size 64M --passes 4 --threads 1", "local memory / data, %", shares(10),
        "less than 1 % between runs of one program, where the kernel's swap has 2 to 60 %", 0.01,
        (), "Their cluster was idle; here a host takes processors away at times, as the spread of "
        "plain memory shows. Spread is (longest - shortest) / median.",
        rivals=("dram", "swap"), shows="spread", on=FAR, repeats=5),
    Experiment(
        "matmul", NVMALLOC, "Matrices multiplied by processes that share one",
        "\"Out-of-Core Matrix Multiplication\"", "matmul", "--size 32M --budget 8M --threads 1",
        "processes", points("--processes", 1, 2, 4),
        "2.19 % slower than memory with as many processes; with eight a node, where memory has "
        "room for two with their copies of B, 53.75 % faster than those two", 1.54, ("2",),
        "Memory that has room for one copy of B runs one process here, and two share a B of four "
        "times their budget: two processors can at best double the rate. Where dram itself gains "
        "nothing by a second process, other work had the processors, and only \"ratio\" counts.",
        rivals=("dram", "mmap", "mmap-random"), beside=("dram", "1")),
    Experiment(
        "matmul-ceph", NVMALLOC, "A matrix on a local disk, and on a store of the network",
        "\"Out-of-Core Matrix Multiplication\"", "matmul",
        "--size 32M --budget 8M --threads 2", "B on", (
            Point("a local file", (), "1"), Point("a Ceph cluster", ("--store", CEPH), "near 1")),
        "SSDs of other nodes (R-SSD) and of the own (L-SSD) are comparable", 0.9,
        ("a Ceph cluster",),
        "The rate beside Outcore's with a local file. Theirs is a store of its own over the nodes' "
        "SSDs; ours an image of a Ceph cluster, whose three disks are files of the same disk, and "
        "whose servers work on the same two processors.", rivals=(), on=DISK,
        beside=("outcore", "a local file")),
    Experiment(
        "matmul-traffic", NVMALLOC, "What the multiplication reads, by rows and by columns",
        "\"Data Exchanged between Application, FUSE and SSD\"", "matmul",
        "--size 16M --processes 2 --threads 1", "order of B", (
            with_paper(*pairs(("rows, room for B", "--budget 18M")), "128; 2; 1"),
            *pairs(("rows", "--budget 4M"),
                    ("columns, tiles", "--budget 4M --order columns --tile 512")),
            with_paper(*pairs(("columns", "--budget 4M --order columns")), "128; 56; 65")),
        "by rows 256 GB of accesses to B become 4 GB of requests and 2 GB (all of B) of reads; by "
        "columns 113 and 130 GB", 1.1, ("rows, room for B",),
        "All as times the bytes of B: accessed; requested by faults; read from the device. Theirs "
        "has 128 processes on 16 nodes, and a cache of chunks of 256 KiB, which reads more than "
        "was asked for; ours two processes, with one buffer or with a part of the budget each. "
        "mmap's pages may take the allowance beside the budget, too, a third of so small a B.",
        rivals=(PARTS, "mmap-random"), shows="traffic",
        keys=(("requested", "fills"), ("read", "read_bytes")), base_bytes=16 * MIB),
    Experiment(
        "quicksort", NVMALLOC, "Quicksort of several processes",
        "\"MPI-based Quicksort using NVMalloc\"", "sort", "--size 128M --budget 64M --threads 1",
        "processes", points("--processes", 1, 2, 4),
        "ten times as fast as in memory that has no room for all, where two passes exchange much",
        1.5, ("4",),
        "Their rival sorts in two passes by MPI. Here it is the same program in the kernel's "
        "memory, whose processes share its page cache; Outcore's share a buffer. What is written "
        "through a buffer leaves by turns of one process, and is unmapped everywhere."),
    Experiment(
        "byte-writes", NVMALLOC, "Random writes by large pages",
        "\"Write Optimization within NVMalloc\"", "random-io",
        "--size 64M --budget 16M --write-percent 100 --touches 8000 --latency off --threads 1",
        "", (Point("written", (), "1.07; whole chunks: 41"),),
        "128 thousand writes of a byte: 471 MB of pages of 4 KiB change, 504 MB are written, where "
        "whole chunks of 256 KiB would be 19.3 GB", 1.07, (),
        "As times 4 KiB a write. Outcore writes the 4 KiB that changed of a page of any size; what "
        "is written twice before it leaves counts once.",
        rivals=(HUGE_PAGES,), shows="traffic", keys=(("", "written_bytes"),),
        base_bytes=8000 * 4096),
    Experiment(
        "checkpoint", NVMALLOC, "Checkpoints of memory and mapped variables",
        "\"Seamless Checkpointing\"", "checkpoint", "--size 128M", "", (Point("", ()),),
        "no figure: a checkpoint has all of memory and of the mapped variables, and shares the "
        "chunks that did not change with the variable and with earlier checkpoints", 0, (),
        "Theirs copies a chunk of 256 KiB when it is next written; ours freezes pages of 4 KiB at "
        "one moment, and stores them beside the running program.", rivals=(), shows="figures",
        on=DISK, repeats=1),
    Experiment(
        "checkpoint-ceph", NVMALLOC, "Checkpoints on a store of the network",
        "\"Seamless Checkpointing\"", "checkpoint", "--size 128M --between 1", "",
        (Point("", ("--store", CEPH)),),
        "no figure: checkpoints are files of the same store as the variables", 0, (),
        "The same program with its region in an image of a Ceph cluster, as above: a checkpoint is "
        "a snapshot of the image, of one moment, for which Ceph's monitor alone takes about a "
        "second. What is asked is what is asked of a disk.",
        rivals=(), shows="figures", on=DISK, repeats=1),
)

EXPERIMENTS = (*_COMMANDS, *SETTINGS, *STATIC_PROGRAMS, *S3D)
