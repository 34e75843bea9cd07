#!/usr/bin/env python3
"""real_genomes FOLDER : genomes of bacteria, from examples in Debian's packages, as `outcore bench
kmers --genomes FOLDER` reads them. What is there stays; nothing is installed."""

import gzip
import lzma
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from bench_command import Failed  # noqa: E402
from experiment import GENOMES  # noqa: E402

_RAGOUT = "usr/share/doc/ragout/examples"
_KLEBORATE = "usr/share/doc/kleborate/examples/data"


def _of_ragout(genus, species, folder, *strains):
    return {f"{genus}/{species}/{strain}": f"{_RAGOUT}/{folder}/references/{strain}.fasta.gz"
            for strain in strains}


# Of each package the strains, and where it has them.
PACKAGES = {
    "ragout-examples": {
        **_of_ragout("Escherichia", "coli", "E.Coli", "MG1655-K12", "DH1"),
        **_of_ragout("Vibrio", "cholerae", "V.Cholerae", "O1_Inaba", "O395", "H1", "O1_biovar"),
        **_of_ragout("Staphylococcus", "aureus", "S.Aureus", "JKD6008", "USA300_FPR3757", "N315",
                     "COL", "RF122"),
        **_of_ragout("Helicobacter", "pylori", "H.Pylori", "ELS37", "G27", "Gambia94_24",
                     "Puno120", "SJM180"),
    },
    "kleborate-examples": {
        f"Klebsiella/pneumoniae/{strain}": f"{_KLEBORATE}/{name}.fna.xz"
        for strain, name in (("HS11286", "Klebs_HS11286"), ("MGH78578", "MGH78578"),
                             ("NTUH-K2044", "NTUH-K2044"), ("Kp1084", "Klebs_Kp1084"))},
    "bowtie-examples": {
        "Escherichia/coli/536": "usr/share/doc/bowtie/examples/genomes/NC_008253.fna.gz"},
}
_OPEN = {".gz": gzip.open, ".xz": lzma.open}


def _run(what, words, folder):
    try:
        subprocess.run(words, cwd=folder, check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
    except (OSError, subprocess.SubprocessError) as why:
        said = (getattr(why, "stderr", None) or b"").decode(errors="replace").strip().splitlines()
        raise Failed(f"cannot {what}: {said[-1] if said else why}") from None


def unpack(package, folder):
    """Downloads the package into the folder, and unpacks it there."""
    _run(f"download {package}", ["apt-get", "download", package], folder)
    found = sorted(folder.glob(f"{package}_*.deb"))
    if not found:
        raise Failed(f"cannot download {package}: apt-get has left no file")
    _run(f"unpack {package}", ["dpkg-deb", "-x", os.fspath(found[0]), os.fspath(folder)], folder)


def _put(packed, place):
    """It is there whole, or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(place.name + ".part")
    try:
        with _OPEN[packed.suffix](packed) as genome:
            part.write_bytes(genome.read())
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)


def fetch(folder):
    """Puts the genomes that are not there yet into the folder, and returns it. Failed: there is no
    package, or it has no such file."""
    folder = pathlib.Path(folder)
    for package, strains in PACKAGES.items():
        places = {folder / f"{strain}.fna": inside for strain, inside in strains.items()}
        missing = {place: inside for place, inside in places.items() if not place.is_file()}
        if not missing:
            continue
        with tempfile.TemporaryDirectory(prefix="genomes-") as name:
            unpacked = pathlib.Path(name)
            unpack(package, unpacked)
            for place, inside in missing.items():
                try:
                    _put(unpacked / inside, place)
                except (OSError, EOFError, lzma.LZMAError) as why:
                    raise Failed(f"{package}: {place}: {why}") from None
    return folder


def words_of(experiment, options):
    """The experiment's options. Real genomes, if there are among them, are put beside the rivals'
    programs, where they stay; else on the disk."""
    beside = options.disk if options.programs is None else pathlib.Path(options.programs).parent
    return [os.fspath(fetch(pathlib.Path(beside, "genomes"))) if word == GENOMES else word
            for word in experiment.options.split()]


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        raise SystemExit(f"Usage: {(__doc__ or '').splitlines()[0].partition(' :')[0]}")
    try:
        fetch(arguments[0])
    except (Failed, OSError) as why:
        raise SystemExit(f"real_genomes: {why}") from None


if __name__ == "__main__":
    main(sys.argv[1:])
