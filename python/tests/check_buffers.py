"""Processes that share one array in a buffer: read, written, sent and cut."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest


SHARING = """
import multiprocessing, os, sys, time
import numpy as np, outcore

def read(name, barrier):
    a = outcore.open(name)
    total = float(a.sum())
    barrier.wait()  # whoever ends first takes nothing along
    return total, a.stats()["read_bytes"]

def work(name, barrier, answers):
    answers.put(read(name, barrier))

if __name__ == "__main__":
    method, name = sys.argv[1:]
    context = multiprocessing.get_context(method)
    mine = outcore.open(name)  # and so the first to have it
    barrier, answers = context.Barrier(3), context.Queue()
    workers = [context.Process(target=work, args=(name, barrier, answers)) for _ in range(3)]
    for worker in workers:
        worker.start()
    found = [answers.get() for _ in workers]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    print(len({total for total, _ in found}), sum(read for _, read in found))
"""


def wait_until_shareable(name):
    while time.time() - os.stat(name).st_ctime < 0.1:  # what is this fresh is not shared
        pass


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_share_what_they_read(tmp_path, method):
    """With OUTCORE_BUFFER set every process has its pages in one buffer."""
    name, script = str(tmp_path / "t.npy"), tmp_path / "script.py"
    np.save(name, np.arange(1 << 20, dtype="f8"))
    script.write_text(SHARING)
    wait_until_shareable(name)
    (tmp_path / "buffers").mkdir(mode=0o700)
    environment = dict(os.environ, OUTCORE_BUFFER="t", OUTCORE_BUDGET="16M",
                       OUTCORE_BUFFER_DIR=str(tmp_path / "buffers"))
    out = subprocess.run([sys.executable, script, method, name], env=environment, check=True,
                         capture_output=True, text=True).stdout
    answers, read = map(int, out.split())
    assert answers == 1
    assert (8 << 20) <= read <= 1.1 * (8 << 20), read / (8 << 20)


SENT = """
import multiprocessing, sys
import outcore
from outcore.view import lease_of

def work(part):
    region = part._region if isinstance(part, outcore.Array) else lease_of(part).region
    return float(part.sum()), region.metrics()["read_bytes"]

if __name__ == "__main__":
    method, name = sys.argv[1:]
    array = outcore.Runtime("16MiB", buffer="t").open(name)
    wanted = float(array.sum())
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map(work, [array, array[:], array[::2], array[1::2]], chunksize=1)
        sums = [total for total, _ in found]
        assert sums[0] == sums[1] == sums[2] + sums[3] == wanted, (sums, wanted)
    print(max(read for _, read in found))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_what_is_sent_by_reference_stays_in_its_buffer(tmp_path, method):
    """Workers find the buffer of the runtime that the array is of, and its pages in it."""
    name, script = str(tmp_path / "t.npy"), tmp_path / "script.py"
    np.save(name, np.arange(1 << 20, dtype="f8"))
    script.write_text(SENT)
    wait_until_shareable(name)
    (tmp_path / "buffers").mkdir(mode=0o700)
    environment = dict(os.environ, OUTCORE_BUFFER_DIR=str(tmp_path / "buffers"))
    done = subprocess.run([sys.executable, script, method, name], env=environment, check=True,
                          capture_output=True, text=True)
    assert int(done.stdout) <= 0.05 * (8 << 20)
    assert done.stderr == ""


CUT = """
import multiprocessing, sys
import numpy as np, outcore

def hold(name, is_open, may_end):
    array = outcore.Runtime("16MiB", buffer="t").open(name, "r+")
    array[-1] = 7
    is_open.set()
    may_end.wait()
    array.close()

def refused(call):
    try:
        call()
    except OSError as error:
        return type(error).__name__ + ": " + str(error)
    return "not refused"

if __name__ == "__main__":
    name = sys.argv[1]
    context = multiprocessing.get_context("spawn")
    is_open, may_end = context.Event(), context.Event()
    other = context.Process(target=hold, args=(name, is_open, may_end))
    other.start()
    is_open.wait()
    runtime = outcore.Runtime("16MiB", buffer="t")
    array = runtime.open(name, "r+")
    print(refused(lambda: array.resize(1000)))
    assert array.shape == (1 << 16,) and array[-1] == 7 and array[5] == 5
    second = runtime.open(name, "r+")  # of the same file
    second[5] = 55
    assert array[5] == 55
    second.close()
    array.close()
    print(refused(lambda: runtime.open(name, "w", shape=10, dtype="f8")))
    may_end.set()
    other.join()
    assert other.exitcode == 0
    array = runtime.open(name, "r+")
    assert array[-1] == 7 and array[5] == 55
    array.resize(1000)
    array.close()
    whole = np.fromfile(name)
    assert len(whole) == 1000 and whole[5] == 55 and whole[999] == 999
"""


def test_a_file_is_not_cut_under_others_of_its_buffer(tmp_path):
    """What they have beyond the new end would be gone: it is refused before it is cut."""
    name, script = str(tmp_path / "t.f8"), tmp_path / "script.py"
    np.arange(1 << 16, dtype="f8").tofile(name)
    script.write_text(CUT.replace("open(name, \"r+\")", "open(name, \"r+\", dtype=\"f8\")"))
    wait_until_shareable(name)
    (tmp_path / "buffers").mkdir(mode=0o700)
    environment = dict(os.environ, OUTCORE_BUFFER_DIR=str(tmp_path / "buffers"))
    done = subprocess.run([sys.executable, script, name], env=environment, capture_output=True,
                          text=True, timeout=120)
    assert (done.stderr, done.returncode) == ("", 0)
    for line in done.stdout.splitlines():
        assert line.startswith("OSError: ") and "Device or resource busy" not in line, line
        assert "others have it in the buffer t" in line and name in line, line
    assert len(done.stdout.splitlines()) == 2


WRITTEN = """
import multiprocessing, os, signal, sys
import numpy as np, outcore

ROWS = 256

def write(sent):
    array, row = sent
    array[row] = row          # by a call
    np.asarray(array[row])[::2] += 1000  # and by a touch
    return os.getpid()

def write_and_die(array):
    array[ROWS] = -1
    os.kill(os.getpid(), signal.SIGKILL)

def expected(row):
    whole = np.full(4096, float(row))
    whole[::2] += 1000
    return whole

if __name__ == "__main__":
    method, name = sys.argv[1:]
    context = multiprocessing.get_context(method)
    array = outcore.Runtime("16MiB", buffer="t").open(name, "r+")
    with context.Pool(4) as pool:
        workers = set(pool.map(write, [(array, row) for row in range(ROWS)], chunksize=8))
    assert os.getpid() not in workers
    killed = context.Process(target=write_and_die, args=(array,))
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    # Nothing was flushed: all see one memory.
    for row in range(ROWS):
        assert np.array_equal(array[row], expected(row)), row
    assert (array[ROWS] == -1).all()
    array.flush()
    stored = np.load(name)
    assert all(np.array_equal(stored[row], expected(row)) for row in range(ROWS))
    assert (stored[ROWS] == -1).all() and (stored[ROWS + 1:] == 0).all()
    print("right")
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_writes_one_array(tmp_path, method):
    """More than the budget, with the array sent by reference; and a worker that is killed."""
    name, script = str(tmp_path / "t.npy"), tmp_path / "script.py"
    np.save(name, np.zeros((1024, 4096)))
    script.write_text(WRITTEN)
    (tmp_path / "buffers").mkdir(mode=0o700)
    environment = dict(os.environ, OUTCORE_BUFFER_DIR=str(tmp_path / "buffers"))
    done = subprocess.run([sys.executable, script, method, name], env=environment,
                          capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("right\n", "")


FORKED = """
import os, pickle, sys
import outcore

def use_views(views):
    for view in views:
        assert (view[10:5000] == 1).all()

def use_arrays(arrays, mode):
    for array in arrays:
        assert (array.read(slice(10, 5000)) == 1).all() and array._region.is_shared
        if mode == "r+":
            array[5000:6000] = os.getpid()

def work(arrays, views, order, mode, sent):
    got = []
    for what in order:
        if what == "f":  # a grandchild goes on
            child = os.fork()
            if child != 0:
                assert os.waitpid(child, 0)[1] == 0
                return
        elif what == "1":
            use_views(views[:1])
        elif what == "p":
            got = pickle.loads(sent)
            use_arrays(got, mode)
        else:
            use_views(views) if what == "v" else use_arrays(arrays, mode)
    if mode == "r+":  # what is written through the one is seen through the other
        for array, view in zip(arrays, views):
            assert (view[5000:6000] == os.getpid()).all()
            view[6000] = 7
            assert array[6000] == 7
    runtime = arrays[0].runtime
    assert runtime.budget == 16 << 20
    assert len(runtime.stats()["regions"]) == len(arrays) + len(views) + len(got)
    if order == "ava":
        grandchild = os.fork()
        if grandchild == 0:
            use_views(views)
            use_arrays(arrays, mode)
            os._exit(0)
        assert os.waitpid(grandchild, 0)[1] == 0
        runtime.close()
        use_views(views)

if __name__ == "__main__":
    name, mode = sys.argv[1:]
    runtime = outcore.Runtime("16MiB", buffer="t")
    arrays = [runtime.open(name, mode, shape=1 << 17, dtype="f8", offset=i << 20, format="raw")
              for i in range(3)]
    views = [array[:] for array in arrays]
    sent = pickle.dumps(arrays)
    for order in ["va", "av", "vav", "ava", "vpa", "pva", "avp", "pav",
                  "1fva", "1fav", "afva", "vfpav"]:
        child = os.fork()
        if child == 0:
            try:
                work(arrays, views, order, mode, sent)
            except BaseException:
                print(order, flush=True)
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, order
    use_views(views)
"""


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_views_and_arrays_of_a_forked_child_are_of_one_runtime(tmp_path, mode):
    """Whichever is used first: with two of them the second had pages of its own, outside of the
    buffer, and half of its limit for those."""
    name, script = str(tmp_path / "t.f8"), tmp_path / "script.py"
    np.ones(1 << 19).tofile(name)
    script.write_text(FORKED)
    wait_until_shareable(name)
    (tmp_path / "buffers").mkdir(mode=0o700)
    environment = dict(os.environ, OUTCORE_BUFFER_DIR=str(tmp_path / "buffers"))
    done = subprocess.run([sys.executable, "-W", "ignore", script, name, mode], env=environment,
                          capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
