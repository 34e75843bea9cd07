"""columns: a table of two columns in Arrow's format, summed by Arrow and polars through maps.

Usage: columns.py build|arrow|polars|polars-lazy, or columns.py create FILE
"""

import hashlib
import os
import sys

ROWS = int(os.environ.get("SCALE", "1")) * 4_000_000
ROWS_OF_A_BATCH = 250_000
TABLE = "table.arrow"
MAP_BYTES = 20 << 20


def build():
    import numpy as np
    import pyarrow as pa

    schema = pa.schema([("i", pa.int64()), ("x", pa.float64())])
    with pa.OSFile(TABLE, "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for first in range(0, ROWS, ROWS_OF_A_BATCH):
            i = np.arange(first, first + ROWS_OF_A_BATCH)
            writer.write_batch(pa.record_batch([i, np.sqrt(i)], schema=schema))


def by_arrow():
    import pyarrow as pa
    import pyarrow.compute as pc

    with pa.memory_map(TABLE, "r") as file:
        table = pa.ipc.open_file(file).read_all()
        few = table.take(list(range(0, ROWS, 9973)))
        print(pc.sum(table["i"]), f"{pc.sum(table['x']).as_py():.3f}", pc.sum(few["i"]))


def by_polars(is_lazy):
    import polars as pl

    if is_lazy:
        frame = pl.scan_ipc(TABLE).filter(pl.col("i") >= 0)
        total = frame.select(pl.col("i").sum(), pl.col("x").max()).collect()
    else:
        frame = pl.read_ipc(TABLE)
        total = frame.select(pl.col("i").sum(), pl.col("x").max())
    print(total["i"][0], f"{total['x'][0]:.6f}")


def create(path):
    """Written through its map, then grown, then written at both ends."""
    import pyarrow as pa

    block = hashlib.sha256(b"block").digest() * 32768  # 1 MiB
    with pa.create_memory_map(path, MAP_BYTES) as file:
        for _ in range(MAP_BYTES // len(block)):
            file.write(block)
        file.flush()
        file.resize(2 * MAP_BYTES)
        file.seek(2 * MAP_BYTES - len(block))
        file.write(block[::-1])
        file.seek(100)
        file.write(b"beginning")
        file.flush()


def main(what, *rest):
    if what == "build":
        build()
    elif what == "arrow":
        by_arrow()
    elif what == "create":
        create(*rest)
    else:
        by_polars(what == "polars-lazy")


main(*sys.argv[1:])
