"""experiments: what the papers measured, as commands that fit a small machine."""

from decision_tree import REUSE, TREE
from experiment import (CEPH, DI, DISK, DLM, FAR, HALF_HOT, HOT, HUGE_PAGES, LARGE_PAGES, MIB, MMAP,
                        NO_HOT, NVMALLOC, PARTS, SMALL, UMAP, WITH_MEMORY, YCSB_MIXES, Experiment,
                        Point, pairs, points, shares, with_paper)
from heaps import GRAPH_CONSTRUCT, YCSB_HEAP, YCSB_HEAP_MIXES
from metagenomics import KMERS, LMAT
from s3d import S3D
from settings import SETTINGS
from static_programs import STATIC_PROGRAMS

_COMMANDS = (
    Experiment(
        "sort", UMAP, "Sort of more than memory", "figure 3a", "sort",
        "--size 128M --budget 64M", "threads",
        points("--threads", 1, 4, 48, 192, paper={"48": "1.15 to 1.22"}),
        "1.15 to 1.22 times mmap with 48 to 240 threads", 1.15, ("48",),
        "Theirs sorts 500 GB on 96 cores, where mmap's threads wait for each other in the kernel. "
        "Here two processors share the work, and what counts is how much is read again.",
        WITH_MEMORY),
    Experiment(
        "bfs", UMAP, "Breadth-first search, edges in a file", "figure 3b", "bfs",
        "--scale 19 --budget 64M", "threads",
        points("--threads", 1, 4, 16, 96, paper={"96": "up to 1.3"}),
        "up to 1.3 times mmap at high concurrency", 1.3, ("96",),
        "Their graph has 2^31 vertices on NVMe drives. Ours fits a small machine: its vertices "
        "stay in memory of their own, its edges are twice the budget.", WITH_MEMORY),
    Experiment(
        "bfs-buffer", UMAP, "Breadth-first search in less and less memory", "figure 5a", "bfs",
        "--scale 19 --threads 4", "budget, % of the edges",
        pairs(("100", "--budget 128M"), ("80", "--budget 102M"), ("60", "--budget 77M"),
               ("40", "--budget 51M"), ("20", "--budget 26M"), ("10", "--budget 13M")),
        "from 10 to 100 %; more memory takes less time only where more than 60 % has room", 1.0,
        (), "As theirs, but that mmap gets the same memory at each point. What does not fit is "
        "read from a disk in memory, so that more memory gains less than it did on their flash."),
    Experiment(
        "bfs-sizes", UMAP, "Breadth-first search of larger and larger graphs", "figure 6a", "bfs",
        "--threads 4", "scale",
        pairs(*((str(scale), f"--scale {scale} --budget {2 ** (scale - 13)}M")
                for scale in (17, 18, 19, 20))),
        "in half of the graph's size always faster than mmap, and the more so the larger it is, "
        "from scale 28 to 31", 1.0, (),
        "Graphs of 32 to 256 MiB here. The smallest are read in a tenth of a second or so, in "
        "which Outcore has hardly begun to learn how much to bring in."),
    Experiment(
        "ycsb", UMAP, "YCSB on a table of records", "figure 3c", "ycsb",
        f"{SMALL} --mix A --touches 50000 --latency off", "threads",
        points("--threads", 4, 16, 64, paper={"4": "1.3", "64": "1.9"}),
        "1.3 times mmap with 4 executors, 1.9 times with 64", 1.9, ("64",),
        "Theirs is the database N-Store, with 384 GB of records and transactions; ours is a table "
        "of records and its index, four records a page. Half of the operations write. "
        "mmap's readahead brings in what nobody asks for; without it a miss costs the kernel "
        "little more than the read, which on a disk in memory takes some microseconds.",
        WITH_MEMORY),
    Experiment(
        "ycsb-mixes", UMAP, "All mixes of YCSB", "figure 3c", "ycsb",
        f"{SMALL} --latency off --threads 16", "mix",
        YCSB_MIXES,
        "no figure by mix; 1.3 to 1.9 times mmap by all", 1.3, (),
        "A: half updates; B: one in twenty; C: reads; D: reads of the latest, and inserts; E: "
        "scans, and inserts; F: half read-modify-writes. Beside mmap without advice ours is "
        "several times as fast, as its readahead brings in what nobody asks for."),
    YCSB_HEAP, YCSB_HEAP_MIXES,
    *LMAT,
    Experiment(
        "images", UMAP, "Medians along vectors through images", "umap-apps", "images",
        f"{SMALL} --touches 500", "threads", points("--threads", 1, 4, 16),
        "no figure: the application comes with UMap", 0, (),
        "A vector touches another page in nearly every image, so that there is nothing to bring in "
        "ahead, and mmap's readahead reads in vain. The images are a FITS file that astropy opens: "
        "32-bit numbers, the highest byte first.", WITH_MEMORY),
    GRAPH_CONSTRUCT,
    Experiment(
        "lriot-reads", DI, "Random reads", "figure 3", "random-io",
        f"{SMALL} --latency off --touches 50000", "threads",
        points("--threads", 1, 4, 16, 128, 256, paper={"128": "0.87"}),
        "87 % of direct I/O with 128 threads", 0.87, ("128",),
        "Their flash takes far longer to answer than a fault does; a disk in memory answers in "
        "some microseconds, and a fault costs more than that. Ours is beside direct I/O by "
        "the same number of threads, and beside both of mmap's advices.",
        ("direct", *WITH_MEMORY)),
    Experiment(
        "lriot-writes", DI, "Random writes", "figure 4", "random-io",
        f"{SMALL} --latency off --touches 50000 --write-percent 100", "threads",
        points("--threads", 1, 4, 16, 128, paper={"128": "2"}),
        "a bit more than twice mmap; about as fast as direct I/O that reads, changes and writes", 2,
        (), "A page that is written costs us a flush of the other processor's translations. What "
        "is asked is beside the better mmap. Direct I/O reads a page, changes a word and writes "
        "it: it has no faults, and keeps nothing.",
        ("mmap", "mmap-random", "direct")),
    Experiment(
        "lriot-mixed", DI, "Random reads and writes, half and half", "section 5.1", "random-io",
        f"{SMALL} --latency off --touches 50000 --write-percent 50", "threads",
        points("--threads", 1, 4, 16), "no figure: LRIOT mixes them, too", 1.0, (),
        "Pages that were written are protected before they are stored, so that no write is lost; "
        "that, and flushes of the other processor's translations, is what a read does not pay. "
        "Direct I/O has neither.",
        (*WITH_MEMORY, "direct")),
    Experiment(
        "searches", DI, "Searches in a sorted vector, a map and a hash map", "figure 6",
        "map-lookup", f"{SMALL} --threads 4 --touches 10000", "structure",
        points("--structure", "vector", "map", "hash"), "several times mmap", 1.0, (),
        "Records have 16 bytes, as theirs. Each step of a search is another page, which readahead "
        "cannot know: beside mmap without advice ours is several times as fast, as theirs, and "
        "beside one that reads no page ahead a fault of ours costs more.", WITH_MEMORY),
    *KMERS,
    Experiment(
        "bfs-semi", DI, "Breadth-first search, edges in a file", "figure 10", "bfs",
        "--scale 19 --budget 16M --asynchronous", "threads", points("--threads", 1, 32, 256),
        "0.57 of plain memory; mmap is near it with a helper that calls MADV_DONTNEED every ten "
        "seconds, and far below without", 1.0, (),
        "An eighth of the edges has room, a ninth of theirs. Beside the best of mmap: with either "
        "advice, and with such a helper, every tenth of a second here, as runs are shorter "
        "(`mmap-dontneed`, with MADV_RANDOM). Plain memory is nearer where a search does more than "
        "to look at each edge once.", ("mmap", "mmap-random", "mmap-dontneed", "dram"),
        limit_seconds=10),
    Experiment(
        "bfs-semi-memory", DI, "Breadth-first search, edges in a file, in less memory",
        "figure 11", "bfs", "--scale 19 --threads 32 --asynchronous", "budget, % of the edges",
        pairs(("11", "--budget 14M"), ("7", "--budget 9M"), ("3", "--budget 4M")),
        "from 16 to 3 GiB for 146: significantly faster than mmap as memory becomes scarce", 1.0,
        (), "mmap without advice does not end in ten seconds, as theirs was far behind. Beside one "
        "that reads nothing ahead, or whose pages a helper drops, the difference is what a fault "
        "costs us.", ("mmap", "mmap-random", "mmap-dontneed"), limit_seconds=10),
    Experiment(
        "bfs-external", DI, "Breadth-first search, everything in files", "figure 12", "bfs",
        "--scale 17 --fully-external --asynchronous --budget 8M", "threads",
        points("--threads", 1, 4, 16, 256, paper={"256": "7.44"}),
        "up to 7.44 times mmap, with 256 threads", 7.44, ("256",),
        "A quarter of all data has room, as theirs. Theirs writes three files of algorithm data on "
        "slow flash, and a visitor for each edge. The factor over mmap was that kernel's, which "
        "locked the whole address space at each fault. The helper drops the edges alone, as "
        "theirs: of what is written MADV_DONTNEED could lose bytes.",
        ("mmap", "mmap-random", "mmap-dontneed", "dram")),
    Experiment(
        "half-memory", DI, "Half the memory", "figure 13", "bfs",
        "--scale 17 --fully-external --asynchronous --threads 16", "budget, % of all data",
        pairs(("24", "--budget 8M"), ("18", "--budget 6M"), ("12", "--budget 4M"),
              paper={"24": "1", "12": "0.81"}),
        "half the memory costs 23 % more time, with 75 % of the buffer for hot pages", 0.81,
        ("12",), "The rate of each beside Outcore's by default settings with all of 24 %. Its own "
        "policy keeps what is touched again without a setting for how much, and does better "
        "than theirs with any share for hot pages.",
        (HOT, HALF_HOT, NO_HOT, *MMAP, "mmap-dontneed"), beside=("outcore", "24")),
    *(Experiment(
        name, DLM, title, place, workload, f"{options} --threads 1", "local memory / data, %",
        shares(least, 25, 50, 75, 100, paper={str(least): told}), claim, asked, (str(least),),
        words,
        rivals=("dram", LARGE_PAGES), shows="slower", on=FAR, keys=keys, limit_seconds=10)
      for name, title, place, workload, options, least, asked, told, keys, claim, words in (
          ("stream", "STREAM", "figures 6 and 7", "stream", "--size 96M --passes 2", 8, 10,
           "below 10 by 64k", (("COPY", "copy_mean_mib_s"), ("TRIAD", "triad_mean_mib_s")),
           "with 8 % local less than 10 times plain memory by pages of 64 KiB and more, 50 to 70 "
           "times by 4 to 16 KiB",
           "Their plain memory gave 3 GB/s and their network 1.2; here plain memory gives some "
           "ten times what a Redis server moves on the same two processors. By readahead pages of "
           "4 KiB take at most about twice as long as those of 64 KiB, where theirs took five."),
          ("himeno", "Himeno", "figure 11", "jacobi", "--size 96M --passes 2", 10, 5, "5 by 1M",
           (("", "rate"),),
           "with 10 % local 5 times plain memory by pages of 1 MiB, 35 times by 4 KiB",
           "Theirs has 1.9 GB on a node of eight processors, and a server with processors of its "
           "own. Ours has 96 MB, and the server works on the same two processors as the program."),
          ("ft", "NPB FT", "figure 8", "ft", "--size 80M --passes 1", 8, 10,
           "10 to 20", (("", "rate"),),
           "10 to 20 times plain memory in the worst case, of IS, CG and FT; larger pages are "
           "better",
           "Theirs is class B, 1.7 GB, where 8 % is 136 MB; ours fits 6 MiB. Lines of the third "
           "direction touch a page of each of 128 planes: of 64 KiB these do not fit, and are read "
           "again for each line."),
          ("is", "NPB IS", "figure 9", "is", "--class A --passes 1", 8, 10,
           "10 to 20", (("", "rate"),),
           "10 to 20 times plain memory in the worst case, of IS, CG and FT; linear in the local "
           "share",
           "Theirs is class B, three arrays, 384 MB together, without buckets. Ours puts keys "
           "into some 500 buckets, of each of which a page is filled at a time: of 64 KiB these "
           "are half of the data."),
          ("cg", "NPB CG", "figure 10", "cg", "--class A --passes 1", 8, 10,
           "10 to 20", (("", "rate"),),
           "10 to 20 times plain memory in the worst case, of IS, CG and FT; below some 100 of 510 "
           "MB it becomes drastically slower",
           "Theirs is class B, with arrays that are used while the matrix is made. Ours has the "
           "matrix and five vectors alone, and reads all of it in each of 25 steps, so that what "
           "is not local is fetched each time."))),
    Experiment(
        "page-writes", DLM, "Writes of a word, each to another page", "table II", "random-io",
        "--size 96M --budget 12M --write-percent 100 --touches 1000 --latency off --threads 1 "
        "--warm",
        "page", tuple(with_paper(point, paper) for point, paper in zip(
            points("--page", "4k", "16k", "64k", "256k", "1M"),
            ("1", "0.61", "0.42", "0.14", "0.033"))),
        "a write that brings one page in and takes another out takes 1.65 to 30 times as long by "
        "pages of 16 KiB to 1 MiB as by 4, by 10 Gbit/s", 0.033, ("1M",),
        "The rate beside that by 4 KiB. Of a page that was written only the 4 KiB that changed "
        "go back.", rivals=(), on=FAR, beside=("outcore", "4k")),
    *(Experiment(
        f"swap-{name}", DLM, f"{title} beside the kernel's swap", "section I", workload,
        f"{options} --threads 1", "local memory / data, %",
        shares(15, 50, 87, paper={"87": "10"}),
        "ten times as fast as swap on a disk, where 15 % of the local memory's size is remote",
        10, ("87",), words,
        rivals=("swap",), on=FAR, beside=("swap", ""))
      for name, title, workload, options, words in (
          ("stream", "STREAM", "stream", "--size 64M --passes 2",
           "Their disk turned, and sought for 4 to 8 ms; that of a virtual machine answers in "
           "less than a tenth of one, and sooner than a server by TCP. What is gained is that more "
           "than a page comes at a time, and ahead."),
          ("himeno", "Himeno", "jacobi", "--size 64M --passes 2",
           "The disk is the same as above. The loop touches fourteen arrays side by side, which "
           "leaves fewer pages of each to come ahead."),
          ("is", "NPB IS", "is", "--class A --passes 1",
           "The disk is the same as above. Keys are put into some 500 buckets, a page of each of "
           "which is filled at a time."),
          ("cg", "NPB CG", "cg", "--class A --passes 1",
           "The disk is the same as above. The matrix is read in order in each of 25 steps."),
          ("ft", "NPB FT", "ft", "--size 80M --passes 1",
           "The disk is the same as above. Lines of the third direction touch a page of each of "
           "128 planes."))),
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
        "processes", points("--processes", 1, 2, 4, paper={"1": "0.98", "2": "1.54"}),
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
        "matmul-order", NVMALLOC, "A matrix walked by rows, by columns, and by columns of tiles",
        "\"Row-major versus Column-major Placement\"", "matmul",
        "--size 16M --budget 4M --processes 2 --threads 1", "order of B",
        pairs(("rows", "--order rows"), ("columns, tiles", "--order columns --tile 512"),
               ("columns", "--order columns")),
        "no figure in the text: by columns the requests are 28 times as many", 0, (),
        "A quarter of B has room. By columns without tiles each row of B has a page that is "
        "touched for four columns.", rivals=("dram", "mmap", "mmap-random")),
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
        "Their rival sorts in two passes by MPI; that is the next section. Asked here is beside "
        "the same program in the kernel's memory, whose processes share its page cache; Outcore's "
        "share a buffer. What is written through a buffer leaves by turns of one process, and is "
        "unmapped everywhere.", ("mmap", "mmap-random", "two-pass")),
    Experiment(
        "quicksort-passes", NVMALLOC, "Quicksort beside a sort in two passes",
        "\"MPI-based Quicksort using NVMalloc\"", "sort", "--size 128M --budget 64M --threads 1",
        "processes", points("--processes", 2, 4, paper={"4": "11.4"}),
        "ten times as fast as in memory that has no room for all, where two passes exchange much",
        10, (),
        "two-pass has the same memory as Outcore, without a mapping: each process sorts as much "
        "as fits, writes it, and then merges a range of keys of all runs. Theirs are 200 GB on "
        "nodes with 128 GB, which exchange them; ours has one disk in memory, on which a second "
        "pass costs little. Its time has all that it writes; what Outcore has still to write at "
        "the end is not in its time.",
        ("two-pass",)),
    Experiment(
        "byte-writes", NVMALLOC, "Random writes by large pages",
        "\"Write Optimization within NVMalloc\"", "random-io",
        "--size 64M --budget 16M --write-percent 100 --touches 8000 --latency off --threads 1",
        "", (Point("written", (), "1.08; whole chunks: 41"),),
        "128 thousand writes of a byte: 467 MB of pages of 4 KiB change, 504 MB are written, where "
        "whole chunks of 256 KiB would be 19.3 GB", 1.08, (),
        "As times 4 KiB a write. Outcore writes the 4 KiB that changed of a page of any size; what "
        "is written twice before it leaves counts once.",
        rivals=(HUGE_PAGES,), shows="traffic", keys=(("", "written_bytes"),),
        base_bytes=8000 * 4096),
    Experiment(
        "checkpoint", NVMALLOC, "Checkpoints of memory and mapped variables",
        "\"Seamless Checkpointing\"", "checkpoint", "--size 128M --memory-part 32M", "",
        (Point("", ()),),
        "no figure: a checkpoint has all of memory and of the mapped variables, and shares the "
        "chunks that did not change with the variable and with earlier checkpoints", 0, (),
        "Theirs copies a chunk of 256 KiB when it is next written; ours freezes pages of 4 KiB at "
        "one moment, and stores them beside the running program. The first has all that was "
        "written, later ones what has changed since.", rivals=(), shows="figures",
        on=DISK, repeats=1),
    Experiment(
        "checkpoint-ceph", NVMALLOC, "Checkpoints on a store of the network",
        "\"Seamless Checkpointing\"", "checkpoint", "--size 64M --between 1", "",
        (Point("", ("--store", CEPH)),),
        "no figure: checkpoints are files of the same store as the variables", 0, (),
        "The same program with its region in an image of a Ceph cluster, as above: a checkpoint is "
        "a snapshot of the image, of one moment, for which Ceph's monitor alone takes about a "
        "second. What is asked is what is asked of a disk.",
        rivals=(), shows="figures", on=DISK, repeats=1),
)

EXPERIMENTS = (*_COMMANDS, *SETTINGS, REUSE, TREE, *STATIC_PROGRAMS, *S3D)
