"""real_genomes: what is there stays, what is put there is whole, and failures are one line."""

import gzip
import lzma
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "papers"), str(ROOT / "bench")]
import real_genomes  # noqa: E402
from bench_command import Failed  # noqa: E402
from experiments import EXPERIMENTS  # noqa: E402

STRAINS = sum(len(strains) for strains in real_genomes.PACKAGES.values())


def text_of(inside):
    return f">{inside}\nACGT\n".encode()


def put_package(package, folder):
    """As a package that was unpacked there."""
    for inside in real_genomes.PACKAGES[package].values():
        path = folder / inside
        path.parent.mkdir(parents=True, exist_ok=True)
        pack = gzip.compress if path.suffix == ".gz" else lzma.compress
        path.write_bytes(pack(text_of(inside)))


class Genomes(unittest.TestCase):
    def setUp(self):
        # pylint: disable-next=consider-using-with
        self._made = tempfile.TemporaryDirectory()
        self.addCleanup(self._made.cleanup)
        self.folder = pathlib.Path(self._made.name, "genomes")
        self.unpacked = []

    def fetch(self, unpack=put_package):
        def seen(package, folder):
            self.unpacked.append(package)
            unpack(package, folder)

        with mock.patch.object(real_genomes, "unpack", seen):
            return real_genomes.fetch(self.folder)

    def files(self):
        return sorted(path for path in self.folder.rglob("*") if path.is_file())

    def test_lie_where_the_command_looks_for_them(self):
        self.fetch()
        self.assertEqual(len(self.files()), STRAINS)
        self.assertTrue(all(path.suffix == ".fna" and len(path.relative_to(self.folder).parts) == 3
                            for path in self.files()))
        packed = real_genomes.PACKAGES["kleborate-examples"]["Klebsiella/pneumoniae/HS11286"]
        self.assertEqual((self.folder / "Klebsiella/pneumoniae/HS11286.fna").read_bytes(),
                         text_of(packed))

    def test_what_is_there_stays(self):
        self.fetch()
        kept = self.folder / "Escherichia/coli/DH1.fna"
        kept.write_text("mine", encoding="ascii")
        (self.folder / "Escherichia/coli/536.fna").unlink()
        self.unpacked.clear()
        self.fetch()
        self.assertEqual(self.unpacked, ["bowtie-examples"])
        self.assertEqual(kept.read_text(encoding="ascii"), "mine")
        self.assertEqual(len(self.files()), STRAINS)
        self.unpacked.clear()
        self.fetch()
        self.assertEqual(self.unpacked, [])

    def test_nothing_half_written_is_left(self):
        def broken(package, folder):
            put_package(package, folder)
            for path in folder.rglob("*.xz"):
                path.write_bytes(path.read_bytes()[:-9])

        with self.assertRaisesRegex(Failed, "^kleborate-examples: .*HS11286.fna: [^\n]*$"):
            self.fetch(broken)
        self.assertTrue(all(path.suffix == ".fna" for path in self.files()))
        self.assertFalse(any("Klebsiella" in os.fspath(path) for path in self.files()))
        self.fetch()
        self.assertEqual(len(self.files()), STRAINS)

    def test_a_package_without_a_genome_is_told(self):
        with self.assertRaisesRegex(Failed, "^ragout-examples: .*No such file"):
            self.fetch(lambda package, folder: None)

    def test_a_download_that_fails_is_one_line(self):
        tools = pathlib.Path(self._made.name, "bin")
        tools.mkdir()
        fake = tools / "apt-get"
        fake.write_text("#!/bin/sh\necho 'W: no' >&2\necho 'E: no network' >&2\nexit 100\n",
                        encoding="ascii")
        fake.chmod(0o755)
        said = subprocess.run([sys.executable, ROOT / "bench/papers/real_genomes.py", self.folder],
                              env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
                              capture_output=True, text=True, check=False)
        self.assertEqual(said.returncode, 1)
        self.assertEqual(said.stderr,
                         "real_genomes: cannot download ragout-examples: E: no network\n")
        self.assertFalse(self.folder.exists())

    def test_are_put_there_for_the_rows_that_ask_for_them(self):
        options = types.SimpleNamespace(programs=self.folder.parent / "rivals", disk="nowhere")
        asked = []
        with mock.patch.object(real_genomes, "fetch", lambda at: asked.append(at) or at):
            for one in EXPERIMENTS:
                words = real_genomes.words_of(one, options)
                self.assertEqual("{" in "".join(words), False, one.name)
        self.assertEqual(set(asked), {self.folder})


if __name__ == "__main__":
    unittest.main()
