#!/usr/bin/env python3
"""make_genomes: random genomes, and reads of known origin, the same for the same arguments.

Usage: make_genomes.py COUNT BASES READS. Writes genomes.fa, reads.fa, truth.tsv (read, taxon) and
what kraken2 knows of them: taxonomy/nodes.dmp, taxonomy/names.dmp, seqid2taxid.map.
"""

import os
import random
import sys

READ_BASES = 150
WRONG_BASES = 1  # in each read
LINE = 10_000
FIRST_SPECIES, FIRST_GENUS, SPECIES_OF_A_GENUS = 1000, 100, 4
BASE_OF_BYTE = bytes(b"ACGT"[i % 4] for i in range(256))


def make_genome(generator, bases):
    return generator.randbytes(bases).translate(BASE_OF_BYTE)


def make_read(generator, genome):
    start = generator.randrange(len(genome) - READ_BASES)
    read = bytearray(genome[start : start + READ_BASES])
    for _ in range(WRONG_BASES):
        read[generator.randrange(READ_BASES)] = generator.choice(b"ACGT")
    return bytes(read)


def write_taxonomy(count):
    nodes = [(1, 1, "no rank"), (2, 1, "superkingdom")]
    names = [(1, "root"), (2, "Bacteria")]
    for index in range(count):
        genus = FIRST_GENUS + index // SPECIES_OF_A_GENUS
        if index % SPECIES_OF_A_GENUS == 0:
            nodes.append((genus, 2, "genus"))
            names.append((genus, f"Genus{genus}"))
        nodes.append((FIRST_SPECIES + index, genus, "species"))
        names.append((FIRST_SPECIES + index, f"Species{FIRST_SPECIES + index}"))
    os.makedirs("taxonomy", exist_ok=True)
    with open("taxonomy/nodes.dmp", "w", encoding="ascii") as file:
        file.writelines(f"{a}\t|\t{b}\t|\t{rank}\t|\t-\t|\n" for a, b, rank in nodes)
    with open("taxonomy/names.dmp", "w", encoding="ascii") as file:
        file.writelines(f"{a}\t|\t{name}\t|\t\t|\tscientific name\t|\n" for a, name in names)


def main(arguments):
    count, bases, reads = map(int, arguments)
    generator = random.Random(7)
    write_taxonomy(count)
    kept = []
    with open("genomes.fa", "wb") as fasta, open("seqid2taxid.map", "wb") as taxa:
        for index in range(count):
            genome = make_genome(generator, bases)
            name = b"kraken:taxid|%d|seq%d" % (FIRST_SPECIES + index, index)
            fasta.write(b">" + name + b"\n")
            fasta.writelines(genome[i : i + LINE] + b"\n" for i in range(0, bases, LINE))
            taxa.write(name + b"\t%d\n" % (FIRST_SPECIES + index))
            kept.append(genome)
    with open("reads.fa", "wb") as fasta, open("truth.tsv", "wb") as truth:
        for number in range(reads):
            index = generator.randrange(count)
            fasta.write(b">r%d\n%s\n" % (number, make_read(generator, kept[index])))
            truth.write(b"r%d\t%d\n" % (number, FIRST_SPECIES + index))


if __name__ == "__main__":
    main(sys.argv[1:])
