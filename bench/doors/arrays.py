"""arrays: the NumPy programs of `make bench-doors`. Each prints a line of JSON.

Usage: arrays.py make FILE BYTES
       arrays.py WORKLOAD MEMORY FILE VALUE, of WORKLOADS and MEMORIES below; VALUE: what is written
       arrays.py check-writes FILE VALUE

The file is float32. Its element n is PATTERN[n // 256 * 37 % 4096 + n % 256], a whole number below
512, so that sums of a column are exact in whichever order they are made.
"""

import json
import mmap
import resource
import sys
import time

import numpy as np

ROW = 256  # elements: 1 KiB
SQUARE_ROW = 32768
TURN, PATTERN_ROWS = 37, 4096
PATTERN = np.random.default_rng(1).integers(0, 512, PATTERN_ROWS + ROW).astype("f4")
BATCH = 20_000  # rows of one `a[rows]`
BATCHES, ZIPF_BATCHES = 5, 30  # their pages are more than the budget
COLUMNS = 8
BLOCK, BLOCKS = 64, 8000  # neighbouring rows of one `a[i:i + BLOCK]`
STEPS, STEP_ROWS = 1500, 64  # of a descent


def make(path, size_bytes):
    rows = np.lib.stride_tricks.sliding_window_view(PATTERN, ROW)
    with open(path, "wb") as file:
        for first in range(0, size_bytes // (4 * ROW), 65536):
            count = min(65536, size_bytes // (4 * ROW) - first)
            file.write(rows[np.arange(first, first + count) * TURN % PATTERN_ROWS].tobytes())


def elements(numbers):
    return PATTERN[numbers // ROW * TURN % PATTERN_ROWS + numbers % ROW]


def open_array(memory, path, row, mode):
    shape = (_size_bytes(path) // (4 * row), row)
    if memory.startswith("outcore"):
        import outcore
        return outcore.memmap(path, "f4", mode, shape=shape)
    array = np.memmap(path, "f4", mode, shape=shape)
    if memory == "mmap-random":
        array._mmap.madvise(mmap.MADV_RANDOM)
    return array


def _size_bytes(path):
    with open(path, "rb") as file:
        return file.seek(0, 2)


def random_rows(count):
    return np.random.default_rng(2).integers(0, count, BATCHES * BATCH)


def zipf_rows(count):
    """Popular rows lie anywhere in the file."""
    generator = np.random.default_rng(3)
    ranks = generator.zipf(1.2, ZIPF_BATCHES * BATCH) % count
    return generator.permutation(count).astype("i4")[ranks]


def check_rows(rows, found):
    """Whether each is what the file has; in parts, for this memory is limited."""
    for i in range(0, len(rows), 1000):
        numbers = rows[i:i + 1000, None].astype("i8") * ROW + np.arange(ROW)
        if not np.array_equal(found[i:i + 1000], elements(numbers)):
            return False
    return True


def gather(memory, path, is_zipf):
    rows = (zipf_rows if is_zipf else random_rows)(_size_bytes(path) // (4 * ROW))
    seconds, is_right, array = 0.0, True, None
    for i in range(0, len(rows), BATCH):
        batch = rows[i:i + BATCH]
        began = time.perf_counter()
        if array is None:
            array = open_array(memory, path, ROW, "r")
        found = array.gather(batch) if memory == "outcore-gather" else array[batch]
        seconds += time.perf_counter() - began
        is_right = is_right and check_rows(batch, found)
    return array, seconds, len(rows), "rows/s", is_right, len(rows)


def write(memory, path, value):
    rows = random_rows(_size_bytes(path) // (4 * ROW))
    began = time.perf_counter()
    array = open_array(memory, path, ROW, "r+")
    for i in range(0, len(rows), BATCH):
        array[rows[i:i + BATCH]] = value
    array.flush()  # durable in both
    seconds = time.perf_counter() - began
    return array, seconds, len(rows), "rows/s", True, len(rows)


def total(memory, path):
    began = time.perf_counter()
    array = open_array(memory, path, ROW, "r")
    found = array.sum()
    seconds = time.perf_counter() - began
    mean = float(found) / array.size  # float32 rounds: the rivals agree to the last bit
    is_right = abs(mean / float(PATTERN[:PATTERN_ROWS].mean()) - 1) < 0.02
    return array, seconds, array.nbytes / 2**20, "MiB/s", is_right, repr(float(found))


def columns(memory, path, row, count):
    sums, began = [], time.perf_counter()
    array = open_array(memory, path, row, "r")
    for j in range(count):
        sums.append(array[:, j * (row // count)].sum())
    seconds = time.perf_counter() - began
    is_right = True
    for j, found in enumerate(sums):
        wanted = 0.0
        for i in range(0, len(array), 8192):  # in blocks: their memory counts, too
            rows = np.arange(i, min(i + 8192, len(array)), dtype="i8")
            wanted += float(elements(rows * row + j * (row // count)).sum())
        is_right = is_right and float(found) == wanted
    return array, seconds, count, "columns/s", is_right, repr([float(s) for s in sums])


def row_elements(rows):
    return elements(np.asarray(rows, "i8")[:, None] * ROW + np.arange(ROW))


def blocks(memory, path):
    """Means of a few neighbouring rows, anywhere in the file."""
    count = _size_bytes(path) // (4 * ROW)
    firsts = np.random.default_rng(4).integers(0, max(count - BLOCK, 1), BLOCKS)
    found, began = [], time.perf_counter()
    array = open_array(memory, path, ROW, "r")
    for first in firsts:
        found.append(float(array[first:first + BLOCK].sum(dtype="f8")))
    seconds = time.perf_counter() - began
    is_right = all(found[i] == row_elements(range(firsts[i], min(firsts[i] + BLOCK, count)))
                   .sum(dtype="f8") for i in range(0, BLOCKS, 16))
    return array, seconds, BLOCKS, "blocks/s", is_right, repr(sum(found))


def product(memory, path):
    """`a @ v`, of whole numbers so small that float32 is exact."""
    vector = (np.arange(ROW) % 7 == 3).astype("f4")
    began = time.perf_counter()
    array = open_array(memory, path, ROW, "r")
    found = array @ vector
    seconds = time.perf_counter() - began
    is_right = all(np.array_equal(found[i:i + 4096],
                                  row_elements(range(i, min(i + 4096, len(found)))) @ vector)
                   for i in range(0, len(found), 65536))
    return array, seconds, array.nbytes / 2**20, "MiB/s", is_right, repr(float(found.sum()))


def descend(rows_of, count):
    """Linear regression by stochastic gradient descent; the weights."""
    generator, weights = np.random.default_rng(5), np.zeros(ROW, "f4")
    for _ in range(STEPS):
        part = rows_of(generator.integers(0, count, STEP_ROWS)) / np.float32(512)
        wrong = part @ weights - part[:, 0]
        weights -= np.float32(0.01) * (wrong @ part) / np.float32(STEP_ROWS)
    return weights


def descent(memory, path):
    count = _size_bytes(path) // (4 * ROW)
    began = time.perf_counter()
    array = open_array(memory, path, ROW, "r")
    weights = descend(lambda rows: array[rows], count)
    seconds = time.perf_counter() - began
    is_right = np.array_equal(weights, descend(row_elements, count))
    return array, seconds, STEPS, "steps/s", is_right, repr(weights[:4].tolist())


WORKLOADS = {
    "gather": lambda memory, path, value: gather(memory, path, False),
    "zipf": lambda memory, path, value: gather(memory, path, True),
    "writes": write,
    "sum": lambda memory, path, value: total(memory, path),
    "columns": lambda memory, path, value: columns(memory, path, SQUARE_ROW, COLUMNS),
    "blocks": lambda memory, path, value: blocks(memory, path),
    "product": lambda memory, path, value: product(memory, path),
    "descent": lambda memory, path, value: descent(memory, path),
    "short-columns": lambda memory, path, value: columns(memory, path, ROW, 2),
}


def check_writes(path, value):
    rows = np.unique(random_rows(_size_bytes(path) // (4 * ROW)))
    neighbours = np.setdiff1d(rows[:-1] + 1, rows)
    wanted = np.full(ROW, value, "f4")
    with open(path, "rb", buffering=0) as file:
        def row(number):
            file.seek(int(number) * 4 * ROW)
            return np.frombuffer(file.read(4 * ROW), "f4")
        is_right = all(np.array_equal(row(n), wanted) for n in rows) and \
            all(check_rows(np.array([n]), row(n)[None]) for n in neighbours[::10])
    print(json.dumps({"is_right": is_right}))


def main(what, *rest):
    if what == "make":
        return make(rest[0], int(rest[1]))
    if what == "check-writes":
        return check_writes(rest[0], float(rest[1]))
    memory, path, value = rest
    before = resource.getrusage(resource.RUSAGE_SELF)
    array, seconds, work, unit, is_right, answer = WORKLOADS[what](memory, path, float(value))
    after = resource.getrusage(resource.RUSAGE_SELF)
    line = {"seconds": seconds, "work": work, "unit": unit, "is_right": is_right,
            "answer": answer, "rss_bytes": after.ru_maxrss * 1024,
            "user_seconds": after.ru_utime - before.ru_utime,
            "system_seconds": after.ru_stime - before.ru_stime}
    if memory.startswith("outcore"):
        line["counters"] = {k: v for k, v in array.stats().items()
                            if isinstance(v, (int, str)) and not isinstance(v, bool)}
        line["delivery"] = line["counters"].get("delivery")
    print(json.dumps(line))
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
