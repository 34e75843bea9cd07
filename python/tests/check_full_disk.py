"""A disk that is full: more is written than disk and memory hold. The assignment says so at once,
nothing is lost, and as soon as there is room the next flush succeeds."""

import errno
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import outcore

ROOM = 8 << 20
COUNT = 4 << 20  # 32 MiB of f8
PATIENT = {"wait_ms_max": 3_600_000}  # who waits, waits for longer than any check may take


@pytest.fixture
def disk(tmp_path):
    """A file system of 48 MiB, of which a file leaves 8."""
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with open(image, "wb") as file:
        file.truncate(48 << 20)
    for command in (["mkfs.ext4", "-q", "-m", "0", image], ["mount", "-o", "loop", image, folder]):
        if os.geteuid() != 0 or subprocess.run(command, check=False,
                                               capture_output=True).returncode != 0:
            pytest.skip("a file system in a file needs root, mkfs.ext4 and a loop device")
    about = os.statvfs(folder)
    with open(folder / "filler", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, about.f_bavail * about.f_frsize - ROOM)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def make_room(disk):
    os.unlink(disk / "filler")


def told(error, name):
    """That it is the right error, and says where, and what to do."""
    assert (error.errno, error.filename) == (errno.ENOSPC, name), error
    assert "make room" in str(error) and "\n" not in str(error), error
    return True


@pytest.mark.parametrize("delivery", [None, "in-thread"])
@pytest.mark.parametrize("name", ["a.npy", "a.dat"])
def test_an_assignment_says_at_once_that_the_disk_is_full(disk, name, delivery):
    name = str(disk / name)
    with outcore.Runtime(budget="8MiB", delivery=delivery, **PATIENT) as runtime:
        a = runtime.open(name, "w", shape=COUNT, dtype="f8")
        values = np.arange(COUNT, dtype="f8")
        with pytest.raises(OSError) as caught:
            a[...] = values
        assert told(caught.value, name)
        with pytest.raises(OSError) as caught:
            a[COUNT - 1] = 1
        assert told(caught.value, name)
        assert a.stats()["is_degraded"]
        make_room(disk)
        a.flush()
        assert not a.stats()["is_degraded"]
        stored = np.fromfile(name, "f8", offset=a.offset)
        written = int(np.flatnonzero(stored)[-1]) + 1
        assert (ROOM >> 3) < written < COUNT, "as much as there was room for, and memory"
        assert np.array_equal(stored[:written], values[:written])
        a[...] = values
        a.close()
    assert np.array_equal(np.fromfile(name, "f8", offset=128 if name.endswith("npy") else 0),
                          values)


def test_whoever_flushes_is_told_until_there_is_room(disk):
    name = str(disk / "a.dat")
    with outcore.Runtime(budget="64MiB", **PATIENT) as runtime:
        a = runtime.open(name, "w", shape=COUNT, dtype="f8")
        a[...] = 7
        for call in (a.flush, a.flush, a.sync, a.evict, a.close):
            with pytest.raises(OSError) as caught:
                call()
            assert told(caught.value, name)
        assert not a.closed
        make_room(disk)
        a.close()
    assert np.array_equal(np.fromfile(name), np.full(COUNT, 7.0))


def test_ctrl_c_is_heard_beside_a_full_disk(disk):
    """A program that tries again and again does not hold back Ctrl-C."""
    name = str(disk / "a.dat")
    count = 0  # of tries
    raised = -2
    is_heard = False

    def interrupted(*_):
        # Where Python is just clearing up, what is raised is lost, and the tries go on.
        nonlocal raised
        if count > raised + 1:
            raised = count
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)
    with outcore.Runtime(budget="8MiB", **PATIENT) as runtime:
        a = runtime.open(name, "w", shape=COUNT, dtype="f8")
        tries = threading.Semaphore(0)

        def interrupt():
            for _ in range(20):
                tries.acquire()
            while not is_heard:
                os.kill(os.getpid(), signal.SIGINT)
                tries.acquire()

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            while True:
                try:
                    a[...] = 3.0
                except OSError as error:
                    assert told(error, name)
                count += 1
                tries.release()
        is_heard = True
        tries.release()
        thread.join()
        make_room(disk)
        a.flush()
        a[...] = 5.0
        while not a.closed:
            try:
                a.close()
            except BufferError as error:  # what was interrupted goes on by itself
                assert "another thread" in str(error)
    assert np.array_equal(np.fromfile(name), np.full(COUNT, 5.0))


def test_a_touch_of_a_view_names_the_remedy_before_its_signal(disk):
    code = ("import outcore, sys, numpy\n"
            "with outcore.Runtime(budget='8MiB', wait_ms_max=3_600_000) as runtime:\n"
            "    a = runtime.open(sys.argv[1], 'w', shape=int(sys.argv[2]), dtype='f8')\n"
            "    numpy.asarray(a)[...] = 1\n")
    done = subprocess.run([sys.executable, "-c", code, str(disk / "a.dat"), str(COUNT)],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGBUS
    assert "No space left on device" in done.stderr and "make room" in done.stderr, done.stderr


@pytest.mark.parametrize("end", ["", "view = numpy.asarray(a)", "del a"])
def test_what_is_lost_at_the_end_is_one_line(disk, end):
    code = ("import outcore, sys, numpy\n"
            "a = outcore.open(sys.argv[1], 'w', shape=int(sys.argv[2]), dtype='f8',\n"
            "                 budget='64MiB')\n"
            "a[...] = 7\n"
            "try:\n"
            "    a.close()\n"
            "except OSError as error:\n"
            "    assert 'the bytes stay in memory' in str(error)\n" + end)
    name = str(disk / "a.dat")
    done = subprocess.run([sys.executable, "-c", code, name, str(COUNT)],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1 and "stay in memory" not in done.stderr, done.stderr
    assert done.stderr.startswith(f"outcore: what was written last to {name} is lost: ")
    assert "No space left on device" in done.stderr
