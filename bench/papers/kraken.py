"""kraken: what kraken2 tells of the reads of `outcore bench kmers`, beside what is told there."""

import os
import pathlib
import subprocess
import tempfile

import bench_command
import real_genomes
from bench_command import Failed

BUILD = "/usr/lib/kraken2/build_db"  # where Debian's kraken2 has it
KMER_BASES = 20  # as bench/kmer.h: of kraken2's minimizers, too, so that it looks up each k-mer


def answers_of(path, read_column, taxon_column):
    with open(path, encoding="ascii") as lines:
        rows = (line.rstrip("\n").split("\t") for line in lines)
        return {row[read_column]: int(row[taxon_column]) for row in rows}


def _run(words, folder, **more):
    try:
        subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, timeout=600, **more)
    except FileNotFoundError:
        raise Failed(f"{words[0]} is not there: tools/install_packages.sh kraken") from None
    except subprocess.SubprocessError as why:
        said = (getattr(why, "stderr", b"") or b"").decode(errors="replace").strip()
        raise Failed(f"{words[0]}: {said[-200:] or why}") from None


def classify(folder):
    """What kraken2 tells: by read, the taxon, of one it does not know 0."""
    database = folder / "kraken"
    database.mkdir()
    # A cell for each base: k-mers are fewer, so that the table is never full.
    cells = (folder / "genomes.fa").stat().st_size
    with open(folder / "genomes.fa", "rb") as genomes:
        _run([BUILD, "-k", str(KMER_BASES), "-l", str(KMER_BASES), "-c",
              str(cells), "-p", "2",
              "-H", database / "hash.k2d", "-t", database / "taxo.k2d",
              "-o", database / "opts.k2d", "-n", "taxonomy/", "-m", "seqid2taxid.map"], folder,
             stdin=genomes)
    _run(["kraken2", "--db", database, "--minimum-hit-groups", "1", "--output", "told.txt",
          "reads.fa"], folder)
    return answers_of(folder / "told.txt", 1, 2)


def lines_of(options, experiment):
    with tempfile.TemporaryDirectory(prefix="kraken-", dir=options.disk) as name:
        folder = pathlib.Path(name)
        bench_command.lines_of(options.outcore, experiment.workload,
                               *real_genomes.words_of(experiment, options), "--dir",
                               options.folder, "--memory", "outcore", "--export",
                               os.fspath(folder))
        ours = answers_of(folder / "answers.tsv", 0, 1)
        theirs = classify(folder)
    if set(ours) != set(theirs):
        raise Failed("kraken2 has told nothing of some reads")
    same = sum(theirs[read] == taxon for read, taxon in ours.items())
    known = sum((theirs[read] != 0) == (taxon != 0) for read, taxon in ours.items())
    for label, count, least in (("the same taxon", same, 99.0),
                                ("known or unknown to both", known, 99.0)):
        share = 100 * count / len(ours)
        yield {"name": label, "value": share, "unit": "%", "asked": least, "is_most": False,
               "is_met": share >= least, "how": f"{count} of {len(ours)} reads"}
