"""Rows of DI-MMAP have right answers: with genomes that are made up, also where the table has real
ones, and those that kraken2 gives of the same reads."""

import dataclasses
import os
import pathlib
import random
import shutil
import unittest

from tiny_rows import EXPERIMENTS, GENOMES, TinyRows  # first: the paths

import kraken
from experiment import DI, KRAKEN

LETTERS = "ACGT"


def put_genomes(folder):
    """Two genera; of one, two species, of one of these two strains that differ little."""
    drawn = random.Random(7)

    def changed(genome, share):
        return "".join(drawn.choice(LETTERS) if drawn.random() < share else letter
                       for letter in genome)

    red = "".join(drawn.choices(LETTERS, k=30_000))
    for strain, genome in (("Red/round/one", red), ("Red/round/two", changed(red, 0.01)),
                           ("Red/wide/one", changed(red, 0.2)),
                           ("Blue/round/one", "".join(drawn.choices(LETTERS, k=30_000)))):
        path = pathlib.Path(folder, f"{strain}.fna")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f">{strain}\n{genome}\n", encoding="ascii")


class Rows(TinyRows, unittest.TestCase):
    paper = DI

    def test_genomes_that_are_files_have_right_answers(self):
        folder = os.path.join(self.options.disk, "strains")
        put_genomes(folder)
        found = [one for one in EXPERIMENTS if GENOMES in one.options]
        self.assertTrue(found)
        for one in found:
            self.check_row(dataclasses.replace(one,
                                               options=one.options.replace(GENOMES, folder)))

    @unittest.skipUnless(shutil.which("kraken2") and os.path.exists(kraken.BUILD),
                         "kraken2 is not installed: tools/install_packages.sh kraken")
    def test_kraken2_tells_of_reads_what_is_told_here(self):
        found = [one for one in EXPERIMENTS if one.by == KRAKEN]
        self.assertTrue(found)
        for one in found:
            lines = list(kraken.lines_of(self.options, dataclasses.replace(
                one, options="--size 2M --budget 512k --threads 4 --reads 400")))
            self.assertEqual([line["name"] for line in lines if not line["is_met"]], [])
            self.assertEqual(len(lines), 2)


if __name__ == "__main__":
    unittest.main()
