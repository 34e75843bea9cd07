"""numpy_memmap: works on a mapped array in the mode given and prints what it found.

Usage: numpy_memmap.py save|w+|r+|c|r|load FILE
"""

import os
import sys

import numpy as np

SHAPE = (int(os.environ.get("SCALE", "1")) * 16384, 1024)  # of 8 bytes: 128 MiB
PART_ROWS = 1024
CHANGED_ROWS = 750


def fill(array):
    """Element i is i, part by part: the plain memory of this program stays small."""
    row = np.arange(SHAPE[1], dtype="f8")
    for first in range(0, SHAPE[0], PART_ROWS):
        rows = np.arange(first, first + PART_ROWS, dtype="f8")
        array[first : first + PART_ROWS] = rows[:, None] * SHAPE[1] + row


def change_rows(array):
    rows = np.random.default_rng(3).permutation(SHAPE[0])[:CHANGED_ROWS]
    array[rows] = -array[rows]
    array[3, 5] = -1.0


def look(array):
    total = sum(float(array[i : i + PART_ROWS].sum()) for i in range(0, SHAPE[0], PART_ROWS))
    rows = np.random.default_rng(5).integers(0, SHAPE[0], 750)
    print(total, float(array[rows, ::7].sum()), float(array[3, 5]), float(array[::64, 9].sum()))


def main(mode, path):
    if mode == "save":
        with open(path, "wb") as file:
            np.lib.format.write_array_header_1_0(
                file, {"descr": "<f8", "fortran_order": False, "shape": SHAPE})
            for first in range(0, SHAPE[0], PART_ROWS):
                count = PART_ROWS * SHAPE[1]
                start = first * SHAPE[1]
                file.write(np.arange(start, start + count, dtype="f8").tobytes())
        return
    if mode == "load":
        look(np.load(path, mmap_mode="r"))
        return
    array = np.memmap(path, dtype="f8", mode=mode, shape=SHAPE)
    if mode == "w+":
        fill(array)
    if mode in ("r+", "c"):
        change_rows(array)
    look(array)
    if mode in ("w+", "r+"):
        array.flush()


main(*sys.argv[1:])
