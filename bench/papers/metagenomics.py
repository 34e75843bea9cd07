"""metagenomics: reads of DNA classified by k-mers as by LMAT, of the papers on UMap and DI-MMAP."""

from experiment import (DI, FAR, KRAKEN, SMALL, UMAP, WITH_MEMORY, Experiment, Point, pairs,
                        points)
from heaps import KMERS_HEAP

LMAT = (
    Experiment(
        "lmat", UMAP, "Reads classified by k-mers", "figure 3d", "kmers",
        f"{SMALL} --reads 500", "threads",
        points("--threads", 1, 4, 16, paper={"16": "up to 1.36"}),
        "up to 1.36 times mmap", 1.36, ("16",),
        "Their database is LMAT's, of 480 GB and of real genomes; ours is made up, with the same "
        "kind of index, and known answers. Each k-mer of a read is a page by itself here, so that "
        "what a fault costs is all there is to win or lose.", WITH_MEMORY),
    Experiment(
        "lmat-faults", UMAP, "What reads classified by k-mers wait for", "table 3", "kmers",
        f"{SMALL} --threads 16 --reads 1000", "", (Point("for each read", ()),),
        "1.1 to 1.5 times fewer major faults than mmap by three of four samples, 1.4 times more by "
        "one; 1.9 to 3.6 times fewer minor ones", 0, (),
        "For each read of DNA pages read from the disk, touches that waited for one (the kernel's "
        "major faults; those that Outcore's handler is asked), and the kernel's minor faults. mmap "
        "is without advice and with MADV_RANDOM: the first waits as often, and reads many times "
        "as much.",
        shows="traffic", keys=(("pages read", "read_bytes"), ("touches that waited", "waits"),
                               ("minor faults", "minor_faults")), base_bytes=1000 * 4096),
    Experiment(
        "lmat-remote", UMAP, "Reads classified by clients of one database on a server", "figure 7",
        "kmers", "--size 64M --threads 1 --reads 400 --share off", "clients",
        pairs(*((str(n), f"--processes {n} --budget {8 * n}M") for n in (1, 2, 4))),
        "one to four clients on three servers: throughput grows almost in proportion", 0, (),
        "A Redis server and all clients have the same two processors here, so that two clients "
        "are the most that can gain. Answers that take 5 ms, as over a longer way, let four "
        "clients do 3.8 times as much as one (`make bench-far`).",
        rivals=(), on=FAR, beside=("outcore", "1")),
)

KMERS = (
    Experiment(
        "kmers", DI, "Reads classified by k-mers, two indices", "figures 7 to 9", "kmers",
        f"{SMALL} --threads 16 --reads 500", "index",
        points("--index", "hash", "two-level",
               paper={"hash": "2.7 to 4", "two-level": "3.3 to 3.8"}),
        "4.92 times mmap for look-ups in a hash table, 4 times in two levels; 2.7 to 4 and 3.3 to "
        "3.8 times where reads of samples are classified", 4, (),
        "Theirs had 16 GiB for 293 GB, on a machine whose mmap did not scale past 16 threads; "
        "today's kernel without readahead is a better rival. Here reads are classified; k-mers by "
        "themselves are below.", WITH_MEMORY),
    Experiment(
        "kmer-lookups", DI, "K-mers looked up by themselves, two indices", "figure 7", "kmers",
        f"{SMALL} --threads 16 --lookups --touches 100000", "index",
        points("--index", "hash", "two-level", paper={"hash": "4.92", "two-level": "4"}),
        "4.92 times mmap in a hash table, 4 times in two levels, each with as many threads as suit "
        "it best", 4, (),
        "Theirs are the k-mers of a sample, with up to 240 threads, where mmap was best with 16. "
        "Ours are of random places in the genomes, and one in eight is most likely in none: no "
        "look-up is near another.", WITH_MEMORY),
    Experiment(
        "kmers-real", DI, "Reads of real genomes, two indices", "figures 8 and 9", "kmers",
        "--genomes {genomes} --budget 25% --reads 500", "index, threads",
        pairs(*((f"{index}, {threads}", f"--index {index} --threads {threads}")
                for index in ("hash", "two-level") for threads in (4, 16)),
              paper={"hash, 16": "2.7 to 4", "two-level, 16": "3.3 to 3.8"}),
        "samples of reads are classified 2.7 to 4 times as fast as by mmap by a hash table, 3.3 to "
        "3.8 times by two levels", 2.7, (),
        "Their database is of 26,000 organisms; ours of 21 strains of five bacteria, from examples "
        "in Debian's packages. K-mers are not as evenly spread as those of made-up genomes, and "
        "related strains have most of them in common. The budget is a quarter of the hash table's "
        "size for both indices."),
    KMERS_HEAP,
    Experiment(
        "kmers-processes", DI, "Reads classified by processes on one database", "figures 7 to 9",
        "kmers", f"{SMALL} --threads 1 --index two-level --reads 500", "processes",
        points("--processes", 1, 2, 4, paper={"4": "3.3 to 3.8"}),
        "samples of reads are classified 3.3 to 3.8 times as fast as by mmap, with 160 threads of "
        "one process", 3.8, ("4",),
        "Theirs has threads where ours has processes, each with a part of the reads, as several "
        "samples would have. Outcore's processes have one buffer of the whole budget, as mmap's "
        "have one page cache. Each page that leaves a buffer is a hole in its memory, most often "
        "a call by itself, and interrupts the other processor where it is mapped."),
    Experiment(
        "kmers-pinned", DI, "Reads classified by k-mers: the top level pinned, and lists of pages",
        "section 4.1; UMap, section 3.1.2 and figure 4b", "kmers",
        f"{SMALL} --threads 4 --index two-level --reads 1000", "hints",
        pairs(("as it is", ""), ("top pinned", "--pin-top"),
               ("prefetch lists", "--prefetch-lists"), ("both", "--pin-top --prefetch-lists")),
        "LMAT on UMap gains by a part that is pinned; no figure in the text", 1.0,
        ("top pinned",),
        "The rate of each beside Outcore's as it is. The rivals get the same hints: the top level "
        "is locked by mlock, and each page of a list gets MADV_WILLNEED. Lists cost us more than "
        "they bring where a disk answers in microseconds: they are read page by page, and a touch "
        "waits for its batch. Beside mmap without advice: the section on two "
        "indices, above.",
        rivals=("mmap-random",), beside=("outcore", "as it is")),
    Experiment(
        "kmers-kraken2", DI, "The same reads, classified by kraken2", "section 4.1", "kmers",
        "--size 64M --budget 16M --threads 4 --reads 2000", "", (Point("", ()),),
        "no figure: LMAT's answers are compared in its own paper", 0, (),
        "Genomes, taxonomy and reads as files (`--export FOLDER`), of which kraken2 makes a "
        "database of its own, with each 20-mer for itself. Its table has 32 bits a k-mer, and may "
        "confuse two.", rivals=(), shows="figures", by=KRAKEN, repeats=1),
)
