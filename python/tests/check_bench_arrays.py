"""The NumPy rows of `make bench-doors`, on a file of four times the budget: right in each memory,
and the same in all."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

DOORS = pathlib.Path(__file__).resolve().parents[2] / "bench" / "doors"
FILE_BYTES, BUDGET = 8 << 20, "2M"
# All works of a memory in one process, which takes longer to start than most of them; with fewer
# rows of each than the table has.
WORKS = """
import sys
sys.path.insert(0, sys.argv[1])
import arrays
arrays.BATCH, arrays.BLOCKS, arrays.STEPS = 400, 160, 20
for work in sys.argv[5:]:
    arrays.main(work, *sys.argv[2:5])
arrays.main("check-writes", *sys.argv[3:5])
"""


@pytest.fixture(scope="module")
def rows():
    """The memories of each row, in the order of the table, whose last one writes."""
    sys.path[:0] = [str(DOORS), str(DOORS.parent)]
    try:
        from array_work import ArrayWork
        from place import Place
        from rows import ROWS
    finally:
        del sys.path[:2]
    place = Place(DOORS, "", "", "", "", True)
    works = [row.make_work(place) for row in ROWS]
    return {work.name: work.memories for work in works if isinstance(work, ArrayWork)}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "array.dat"
    subprocess.run([sys.executable, "-B", DOORS / "arrays.py", "make", path, str(FILE_BYTES)],
                   check=True, timeout=60)
    return path


def lines_of(memory, works, file, tmp_path):
    """What the works say, and at the end whether the file has what was written."""
    own = tmp_path / f"{memory}.dat"
    shutil.copy(file, own)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OUTCORE_")}
    environment |= {"OUTCORE_BUDGET": BUDGET, "OUTCORE_CONFIG": "", "OPENBLAS_NUM_THREADS": "1"}
    if memory == "outcore-in-thread":
        environment["OUTCORE_DELIVERY"] = "in-thread"
    said = subprocess.run(
        [sys.executable, "-B", "-c", WORKS, DOORS, memory, own, "-7", *works], check=True,
        env=environment, stdout=subprocess.PIPE, text=True, timeout=100)
    return [json.loads(line) for line in said.stdout.splitlines()]


def test_each_row_is_right_and_has_the_same_answer_in_all_memories(rows, file, tmp_path):
    assert list(rows)[-1] == "writes"
    answers = {}
    for memory in sorted({memory for memories in rows.values() for memory in memories}):
        works = [name for name, memories in rows.items() if memory in memories or name == "writes"]
        *lines, written = lines_of(memory, works, file, tmp_path)
        assert written["is_right"], memory
        assert len(lines) == len(works)
        for name, line in zip(works, lines):
            assert line["is_right"], f"{name} in {memory}"
            answers.setdefault(name, set()).add(line["answer"])
        if memory.startswith("outcore"):
            read = sum(line["counters"]["read_bytes"] for line in lines)
            assert read > FILE_BYTES, f"{memory}: it had room for the file"
    assert {name: len(found) for name, found in answers.items()} == dict.fromkeys(rows, 1)
