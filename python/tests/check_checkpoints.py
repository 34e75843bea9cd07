"""Checkpoints of arrays and of ordinary memory, and what a later process finds."""

import errno
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import outcore


@pytest.fixture
def pool(tmp_path):
    return f"versioned:{tmp_path}/pool"


def open_grid(pool, mode="w", name="grid", **options):
    return outcore.open(f"{pool}?object={name}", mode, shape=(64, 1024), dtype="f8", **options)


def test_arrays_and_memory_are_as_they_were(pool):
    state = np.zeros(4, "i8")
    with open_grid(pool) as grid:
        for step in range(3):
            grid[:] = step
            state[:] = step
            report = outcore.checkpoint(f"step {step}", {"grid": grid, "state": state})
            assert report.number > 0 and report.pause > 0
        grid[:] = -1
    assert [c.name for c in outcore.list_checkpoints(pool)] == ["step 0", "step 1", "step 2"]
    last = outcore.restart(pool, "step 1")
    assert last.name == "step 1" and sorted(last) == ["grid", "state"]
    assert last.size_bytes("grid") == 64 * 1024 * 8
    for ask in (last.url, last.size_bytes, last.__getitem__):
        with pytest.raises(KeyError, match="'step 1' has no object 'nosuch': it has "):
            ask("nosuch")
    assert np.frombuffer(last["state"], "i8").tolist() == [1, 1, 1, 1]
    with open_grid(pool, "r+") as grid:
        assert np.all(grid[...] == 1)
    with open_grid(f"{pool}", "r", "grid&at=step 2") as grid:
        assert np.all(grid[...] == 2)
    outcore.remove_checkpoints(pool, "step 0", "step 1")
    assert [c.name for c in outcore.list_checkpoints(pool)] == ["step 2"]


def test_what_is_in_use_at_the_end_of_the_program_is_committed(pool):
    program = textwrap.dedent("""
        import ctypes, outcore, sys
        for name in ("one", "two"):
            grid = outcore.open(f"{sys.argv[1]}?object={name}", "w", shape=1000, dtype="f8")
            view = grid[:]
            view[:] = 5
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(view))  # it outlives the interpreter
    """)
    done = subprocess.run([sys.executable, "-c", program, pool], capture_output=True, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("one", "two"):
        with outcore.open(f"{pool}?object={name}", shape=1000, dtype="f8") as grid:
            assert grid.sum() == 5000


def test_an_array_of_a_file_is_copied(pool, path):
    with outcore.open(path, "w", shape=10000, dtype="i4") as a:
        a[:] = np.arange(10000)
        with pytest.raises(ValueError, match="name a pool"):
            outcore.checkpoint("first", {"numbers": a})
        outcore.checkpoint("first", {"numbers": a}, pool=pool)
        a[:] = 0
    last = outcore.restart(pool)
    assert np.array_equal(np.frombuffer(last["numbers"], "i4"), np.arange(10000))
    with pytest.raises(KeyError):
        last["number"]


def test_threads_write_on_meanwhile(pool):
    """Each writes the same number to two arrays, the second first: never the first without it."""
    first, second = open_grid(pool, name="first"), open_grid(pool, name="second")
    is_over = threading.Event()

    def write():
        number = 0.0
        while not is_over.is_set():
            number += 1
            second[...][0, 0] = number
            first[...][0, 0] = number

    writer = threading.Thread(target=write)
    writer.start()
    for i in range(5):
        outcore.checkpoint(f"{i}", [first, second])
    is_over.set()
    writer.join()
    first.close()
    second.close()
    for i in range(5):
        with (open_grid(pool, "r", f"first&at={i}") as a,
              open_grid(pool, "r", f"second&at={i}") as b):
            assert 0 <= b[0, 0] - a[0, 0] <= 1


def test_quiesce_and_resume(pool):
    calls = []
    with open_grid(pool) as grid:
        outcore.checkpoint("calm", grid, quiesce=lambda: calls.append("quiesce"),
                           resume=lambda: calls.append("resume"))
        assert calls[0] == "quiesce" and calls[-1] == "resume"

        def refuse():
            raise LookupError("not now")

        with pytest.raises(LookupError, match="not now"):
            outcore.checkpoint("never", grid, quiesce=refuse, resume=lambda: None)
        with pytest.raises(TypeError, match="both"):
            outcore.checkpoint("never", grid, quiesce=refuse)
    assert [c.name for c in outcore.list_checkpoints(pool)] == ["calm"]


def test_wrong_input_is_refused(pool):
    with open_grid(pool) as grid:
        outcore.checkpoint("first", grid)
        with pytest.raises(FileExistsError):
            outcore.checkpoint("first", grid)
        with pytest.raises(ValueError):
            outcore.checkpoint("", grid)
        with pytest.raises(ValueError):
            outcore.checkpoint("second", [])
        with pytest.raises(TypeError, match="view"):
            outcore.checkpoint("second", {"a": grid.T})
        with pytest.raises(TypeError):
            outcore.checkpoint("second", {"a": 5})
    with pytest.raises(ValueError):
        outcore.checkpoint("second", grid)
    with pytest.raises(FileNotFoundError):
        outcore.restart(pool, "frist")
    with pytest.raises(FileNotFoundError, match="check the path"):
        outcore.list_checkpoints(pool + "-other")


def test_what_a_killed_process_had_kept(pool):
    program = textwrap.dedent("""
        import os, signal, sys
        import numpy as np, outcore
        step = np.zeros(1, "i8")
        grid = outcore.open(sys.argv[1] + "?object=grid", "w", shape=(64, 1024), dtype="f8")
        for step[0] in range(1, 4):
            grid[:] = step[0]
            outcore.checkpoint(f"step {step[0]}", {"grid": grid, "step": step})
        grid[:] = -1
        grid.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    done = subprocess.run([sys.executable, "-c", program, pool], check=False)
    assert done.returncode == -9
    last = outcore.restart(pool)
    assert np.frombuffer(last["step"], "i8")[0] == 3
    with open_grid(pool, "r+") as grid:
        assert np.all(grid[...] == 3)
    with pytest.raises(OSError) as caught:
        with open_grid(pool, "r+") as grid:
            outcore.restart(pool)
    assert caught.value.errno == errno.EBUSY
