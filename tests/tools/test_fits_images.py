"""outcore bench images: its file is one that readers of FITS open, with the numbers it made."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTCORE = pathlib.Path(os.environ.get("OUTCORE_TEST_BUILD_DIR", ROOT / "build")) / "bin/outcore"
SIDE, FRAMES, SEED = 32, 16, 5  # of the smallest file, 64 KiB
MASK = 2**64 - 1


def mix(x):
    """splitmix64, as bench/random.h has it."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def pixel(index):
    """What bench/image_cube.h says of a pixel: background, noise, and a star in some places."""
    noise_key, star_key = mix(mix(SEED) + 1), mix(mix(SEED) + 2)
    star = mix((star_key + index % SIDE**2) & MASK)
    return (1000 + (mix((noise_key + index) & MASK) >> 48)
            + ((star >> 40) if star % 256 == 0 else 0))


def python_with_astropy():
    """This one, or that of the tests of programs."""
    if importlib.util.find_spec("astropy"):
        return sys.executable
    for folder in (ROOT / "build", OUTCORE.parents[1]):
        python = folder / "programs-venv/bin/python"
        if python.exists() and subprocess.run([python, "-c", "import astropy"],
                                              capture_output=True, check=False).returncode == 0:
            return python
    return None


READ = """
import sys
from astropy.io import fits
with fits.open(sys.argv[1]) as file:
    file.verify("exception")
    (image,) = file
    print(image.header["BITPIX"], *image.data.shape, *image.data.ravel().tolist())
"""


@unittest.skipUnless(OUTCORE.exists(), f"{OUTCORE} is not built")
class FitsImages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        subprocess.run(
            [OUTCORE, "bench", "images", "--size", "64k", "--budget", "2M", "--touches", "5",
             "--threads", "1", "--seed", str(SEED), "--memory", "dram", "--keep", "--dir",
             folder.name], check=True, capture_output=True,
            env={**os.environ, "OUTCORE_CONFIG": ""})
        (self.path,) = pathlib.Path(folder.name).glob("*.fits")

    def test_the_file_is_whole_blocks_with_pixels_behind_the_header(self):
        content = self.path.read_bytes()
        self.assertEqual(len(content), 2880 * (1 + -(-SIDE**2 * FRAMES * 4 // 2880)))
        cards = [content[at:at + 80].decode("ascii") for at in range(0, 2880, 80)]
        self.assertEqual(cards[0][:30], "SIMPLE  =" + "T".rjust(21))
        self.assertIn("END", [card.rstrip() for card in cards])
        for index in (0, 1, SIDE**2, SIDE**2 * FRAMES - 1):
            at = 2880 + 4 * index
            self.assertEqual(int.from_bytes(content[at:at + 4], "big", signed=True), pixel(index))

    def test_astropy_reads_the_numbers_that_were_made(self):
        python = python_with_astropy()
        if python is None:
            self.skipTest("needs astropy: pip install astropy (in build/programs-venv)")
        said = subprocess.run([python, "-c", READ, self.path], capture_output=True, text=True,
                              check=False)
        self.assertEqual(said.returncode, 0, said.stderr)
        bits, *shape_and_numbers = map(int, said.stdout.split())
        self.assertEqual([bits, *shape_and_numbers[:3]], [32, FRAMES, SIDE, SIDE])
        self.assertEqual(shape_and_numbers[3:], [pixel(i) for i in range(SIDE**2 * FRAMES)])


if __name__ == "__main__":
    unittest.main()
