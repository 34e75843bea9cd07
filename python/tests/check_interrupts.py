"""Ctrl-C is heard while a call waits for a store: a file system that is frozen lets nothing be
written, and so whoever writes waits until it is thawed."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import outcore


class Frozen:
    """A file system of 64 MiB that can be frozen."""

    def __init__(self, folder):
        self.folder = folder
        self.is_frozen = False

    def freeze(self):
        subprocess.run(["fsfreeze", "--freeze", self.folder], check=True)
        self.is_frozen = True
        self._late = threading.Timer(20, self.thaw)  # whoever hears nothing waits no longer
        self._late.start()

    def thaw(self):
        if self.is_frozen:
            self.is_frozen = False
            subprocess.run(["fsfreeze", "--unfreeze", self.folder], check=True)
        self._late.cancel()


@pytest.fixture
def disk(tmp_path):
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    for command in (["mkfs.ext4", "-q", image], ["mount", "-o", "loop", image, folder]):
        if os.geteuid() != 0 or subprocess.run(command, check=False,
                                               capture_output=True).returncode != 0:
            pytest.skip("a file system in a file needs root and a loop device")
    found = Frozen(folder)
    yield found
    if found.is_frozen:
        found.thaw()
    subprocess.run(["umount", "-l", folder], check=True)


def interrupt_when_main_waits_in(name):
    """Sends Ctrl-C when the main thread is in a function of this name, and stands still."""
    main = threading.main_thread().ident

    def place():
        frame, where = sys._current_frames()[main], []
        while frame is not None:
            where.append((frame.f_code.co_name, frame.f_lasti))
            frame = frame.f_back
        return where

    def watch():
        before, seen = None, 0
        while seen < 20:
            now = place()
            seen = seen + 1 if now == before and any(name == n for n, _ in now) else 0
            before = now
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.mark.parametrize("wait", ["flush", "assign"])
def test_ctrl_c_is_heard_while_a_call_waits_for_the_disk(disk, wait):
    name = str(disk.folder / "a.dat")
    with outcore.Runtime(budget="8MiB") as runtime:
        a = runtime.open(name, "w", shape=4 << 20, dtype="f8")  # 32 MiB
        a[:1000] = 1
        disk.freeze()
        watcher = interrupt_when_main_waits_in({"flush": "flush_range", "assign": "_assign"}[wait])
        with pytest.raises(KeyboardInterrupt):
            if wait == "flush":
                a.flush()
            else:
                a[...] = 7.0  # more than the budget holds
        assert disk.is_frozen, "it was heard only when the disk answered"
        watcher.join()
        disk.thaw()
        a[...] = 3.0  # what was interrupted goes on by itself, and does no harm
        while not a.closed:
            try:
                a.close()
            except BufferError as error:
                assert "another thread" in str(error)
    assert np.array_equal(np.fromfile(name), np.full(4 << 20, 3.0))


@pytest.mark.parametrize("call", [
    "array.flush()", "array.prefetch(wait=True)", "array.residency()", "array.stats()",
    "outcore.checkpoint(str(next(names)), {'a': array}, pool=pool, quiesce=time.time, "
    "resume=time.time)",
    "outcore.checkpoint(str(next(names)), {'a': array}, pool=pool, "  # gives up the lock itself
    "quiesce=lambda: time.sleep(0.01), resume=time.time)"])
def test_daemon_threads_in_a_call_when_the_interpreter_ends_are_no_abort(tmp_path, call):
    program = f"""
import itertools, sys, threading, time, outcore
names = itertools.count()
array = outcore.open(sys.argv[1], "w", shape=100_000, dtype="f8")
begun = threading.Semaphore(0)

def work(i):
    pool = f"versioned:{{sys.argv[1]}}-{{i}}"
    while True:
        {call}
        begun.release()

for i in range(4):
    threading.Thread(target=work, args=(i,), daemon=True).start()
for i in range(8):
    begun.acquire()
view = array[:]  # it is not unmapped at the end
view[:] = 5
"""
    for name in ("one", "two", "three"):
        done = subprocess.run([sys.executable, "-c", program, tmp_path / name], timeout=60,
                              capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert np.fromfile(tmp_path / name).sum() == 500_000
