"""faiss_index: builds an index of vectors and searches it; prints the neighbours found.

Usage: faiss_index.py build|memory|mmap|mmap-ifc|merge|on-disk
"""

import os
import sys
import zlib

import faiss
import numpy as np
from faiss.contrib.ondisk import merge_ondisk

SCALE = int(os.environ.get("SCALE", "1"))  # times as much data
VECTORS, DIMENSIONS, LISTS = SCALE * 110_000, 64, 128  # 28 MB
QUERIES, PROBES, NEIGHBOURS = 40, 8, 5


def make_vectors(count):
    """The first ones are the same, however many."""
    return np.random.default_rng(1).standard_normal((count, DIMENSIONS), dtype="f4")


def build():
    vectors = make_vectors(VECTORS)
    quantizer = faiss.IndexFlatL2(DIMENSIONS)
    index = faiss.IndexIVFFlat(quantizer, DIMENSIONS, LISTS)
    index.cp.niter = 4
    index.train(vectors[:10_000])
    faiss.write_index(index, "empty.index")
    index.add(vectors)
    faiss.write_index(index, "ivf.index")


def merge():
    index = faiss.read_index("empty.index")
    merge_ondisk(index, ["ivf.index"], "lists.data")
    faiss.write_index(index, "on-disk.index")


def search(path, flags):
    index = faiss.read_index(path, flags)
    index.nprobe = PROBES
    queries = make_vectors(QUERIES) + np.float32(0.01)
    distances, found = index.search(queries, NEIGHBOURS)
    hits = int((found[:, 0] == np.arange(QUERIES)).sum())
    print(hits, zlib.crc32(found.tobytes()), f"{float(distances.sum()):.3f}")


def main(what):
    if what == "build":
        build()
    elif what == "merge":
        merge()
    elif what == "on-disk":
        search("on-disk.index", 0)
    else:
        flags = {"memory": 0, "mmap": faiss.IO_FLAG_MMAP, "mmap-ifc": faiss.IO_FLAG_MMAP_IFC}
        search("ivf.index", flags[what])


main(*sys.argv[1:])
