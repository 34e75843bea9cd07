"""Pickling by reference, process pools, and what a forked child finds."""

import copy
import errno
import multiprocessing
import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest

import outcore


@pytest.fixture
def table(tmp_path):
    """A file of 8 MiB."""
    name = str(tmp_path / "t.npy")
    np.save(name, np.arange(1 << 20, dtype="f8").reshape(1024, 1024))
    return name


def total(a):
    """In another process: the sum, and whether it came by reference."""
    return float(a.sum()), type(a).__name__, os.getpid()


def add_one(a):
    a += 1
    a.flush()


def again(thing):
    return pickle.loads(pickle.dumps(thing))


def test_an_array_is_pickled_by_reference(table):
    with outcore.open(table, budget="8MiB", page="16k", policy="fifo") as a:
        text = pickle.dumps(a)
        assert len(text) < 1000
        with pickle.loads(text) as b:
            for name in ("shape", "dtype", "offset", "order", "mode", "filename", "url"):
                assert getattr(a, name) == getattr(b, name)
            assert b.stats()["page_bytes"] == 16384 and b.runtime.budget == 8 << 20
            assert np.array_equal(a, b)


@pytest.mark.parametrize("mode, reopened", [("w", "r+"), ("w+", "r+"), ("x", "r+"), ("a", "r+"),
                                            ("r+", "r+"), ("r", "r"), ("c", "c")])
def test_reopening_destroys_nothing(path, mode, reopened):
    if mode in ("r", "r+", "c"):
        np.arange(100.0).tofile(path)
    with outcore.open(path, mode, shape=100, dtype="f8") as a:
        if mode not in ("r", "c"):
            a[...] = np.arange(100)
        with again(a) as b:  # what was written comes along
            assert b.mode == reopened and np.array_equal(b, np.arange(100))


def test_a_part_is_pickled_by_reference(table):
    with outcore.open(table, "r+") as a:
        for part in (a[10:500], a[::-2, 3:5], a.T, a[7], a[3:4, ::7].T, a[5:].view("i8")):
            text = pickle.dumps(part)
            assert len(text) < 1500
            back = pickle.loads(text)
            assert np.array_equal(back, part) and back.strides == part.strides
            assert back.flags.writeable and type(back) is outcore.View
        back = pickle.loads(pickle.dumps(a[10:500]))
        back[0, 0] = -1
        assert a[10, 0] == -1  # one file, one memory
        assert len(pickle.dumps(a[:10] + 1)) > 80000
        del part, back
    with outcore.open(table) as a:
        part = again(a[3:])
        assert not part.flags.writeable
        del part


def test_scratch_is_not_pickled_in_silence():
    a = outcore.full(1000, 1.0)
    with pytest.raises(pickle.PicklingError, match="this process only"):
        pickle.dumps(a)
    assert np.array_equal(again(a[:]), np.ones(1000))  # a part of it goes by value
    assert np.array_equal(copy.deepcopy(a), a) and type(copy.copy(a)) is np.ndarray


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_open_what_they_are_sent(table, method):
    with outcore.open(table, "r+") as a, multiprocessing.get_context(method).Pool(1) as pool:
        wanted = float(a.sum())
        assert pool.apply(total, (a,))[:2] == (wanted, "Array")
        assert pool.apply(total, (a[3:5],))[:2] == (float(a[3:5].sum()), "View")
        a[0, 0] = 1000  # is written back as it is sent
        assert pool.apply(total, (a,))[0] == wanted + 1000
        pool.apply(add_one, (a[1020:],))
        a.evict()
        assert float(a.sum()) == wanted + 1000 + 4 * 1024
        pool.close()
        pool.join()


def test_joblib_sends_references(table):
    with outcore.open(table) as a:
        with joblib.parallel_config(backend="loky", n_jobs=2):
            found = joblib.Parallel()(joblib.delayed(total)(part)
                                      for part in (a, a[:512], a[512:]))
        assert found[0][0] == found[1][0] + found[2][0] == float(a.sum())
        assert [kind for _, kind, _ in found] == ["Array", "View", "View"]
        assert os.getpid() not in {pid for _, _, pid in found}
    from joblib.externals.loky import get_reusable_executor
    get_reusable_executor().shutdown()


def run(code, *arguments):
    return subprocess.run([sys.executable, "-W", "ignore", "-c", code, *arguments],
                          capture_output=True, text=True, timeout=120, check=False)


def test_a_forked_child_is_told(table):
    done = run("""
import os, pickle, sys, warnings
import numpy as np, outcore
a = outcore.open(sys.argv[1], "r+")
view, text, before = a[5:], pickle.dumps(a), float(a.sum())
child = os.fork()
if child == 0:
    for call in (lambda: a[0], lambda: a[0, 0], lambda: a.sum(), lambda: a.flush(),
                 lambda: a[[0] * 20], lambda: np.asarray(a), lambda: a.stats(),
                 lambda: outcore.Runtime.stats(a.runtime), lambda: a.prefetch(),
                 lambda: pickle.dumps(view)):
        try:
            call()
            print("no error")
        except OSError as error:
            assert error.errno == 1 and "forked child" in str(error), error
    assert "parent" in repr(a)
    a.close()
    with pickle.loads(text) as b:  # opened in the child, it works
        print(float(b.sum()) == before, end=" ", flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(float(a.sum()) == before, float(view[0, 0]))
""", table)
    assert (done.stdout, done.stderr, done.returncode) == ("True True 5120.0\n", "", 0)


def test_a_forked_child_that_touches_a_view_ends_with_a_message(table):
    done = run("""
import os, sys
import outcore
view = outcore.open(sys.argv[1])[5:]
child = os.fork()
if child == 0:
    view.tolist()
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), float(view[0, 0]))
""", table)
    assert done.stdout == "139 5120.0\n" and "forked child touched a region" in done.stderr


def test_a_forked_child_ends_without_touching_its_parents_files(path):
    done = run("""
import os, sys
import outcore
a = outcore.open(sys.argv[1], "w", shape=1000, dtype="f8")
a[:] = 1
child = os.fork()
if child == 0:
    sys.exit(0)  # with all its handlers
assert os.waitpid(child, 0)[1] == 0
a[:] = 2
a.close()
""", path)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    assert np.fromfile(path).sum() == 2000


def in_child(act):
    """What ``act`` gives in a forked child."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run():
        try:
            sender.send(act())
        except Exception as error:
            sender.send(f"{type(error).__name__} {getattr(error, 'errno', None)}")

    process = context.Process(target=run)
    process.start()
    assert receiver.poll(30), "the child says nothing"
    found = receiver.recv()
    process.join(30)
    assert process.exitcode == 0
    return found


@pytest.mark.parametrize("options", [{}, {"budget": "8MiB"}])
def test_an_array_that_is_only_read_is_mapped_anew_in_a_forked_child(table, options):
    with outcore.open(table, **options) as a:
        expected = a.read()
        for act in (lambda: float(a[3, 5]), lambda: a[[9, 3, 7] * 4].tolist(),
                    lambda: a[2:4].tolist(), lambda: float(a.sum()),
                    lambda: np.asarray(a).tolist(), lambda: memoryview(a).tolist(),
                    lambda: a.T[5, :3].tolist(), lambda: a.stats()["size_bytes"],
                    lambda: in_child(lambda: float(a[1023, 1023]))):
            assert in_child(act) == act()
        assert np.array_equal(a, expected)


def test_workers_that_were_forked_read_the_array_of_their_parent(table):
    context = multiprocessing.get_context("fork")
    with outcore.open(table) as a:
        global _shared
        _shared = a
        with context.Pool(3) as pool:
            sums = pool.map(shared_row_sum, range(0, 1024, 64), chunksize=1)
        assert sums == [float(a[i].sum()) for i in range(0, 1024, 64)]
        _shared = None


def shared_row_sum(i):
    return float(_shared[i].sum())


def test_a_runtime_of_ones_own_is_started_anew_in_a_forked_child(table):
    with outcore.Runtime(budget="16MiB") as runtime:
        a, b = runtime.open(table), runtime.open(table)
        assert in_child(lambda: (float(a[5, 5] - b[5, 5]), a.runtime.budget,
                                 len(a.runtime.stats()["regions"]))) == (0, 16 << 20, 2)
        a.close()
        b.close()


def test_a_child_does_not_take_another_file_of_the_same_name(table, tmp_path):
    with outcore.open(table) as a:
        os.rename(table, tmp_path / "old.npy")
        np.save(table, np.ones((1024, 1024)))
        assert in_child(lambda: float(a[3, 5])) == f"OSError {errno.ESTALE}"


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_arrays_that_are_written_stay_the_parents(table, mode):
    with outcore.open(table, mode) as a:
        assert in_child(lambda: float(a[3, 5])) == f"PermissionError {errno.EPERM}"
        assert in_child(lambda: memoryview(a).nbytes) == f"PermissionError {errno.EPERM}"
