"""What fails: an OSError with errno and filename, and no signal, wherever a call can raise it."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

import outcore
from outcore import location


def cut(name):
    with open(name, "r+b") as file:
        file.truncate(8192)


@pytest.mark.parametrize("use", [
    lambda a: a[4_000_000], lambda a: a[100, 0] if a.ndim == 2 else a[3_000_000],
    lambda a: a.sum(), lambda a: a.read(), lambda a: a[list(range(0, 4_000_000, 100_000))],
    lambda a: a.prefetch(wait=True), lambda a: a[1000:].max(), lambda a: list(a.iter_chunks()),
    lambda a: a.__setitem__(slice(0, None, 400_000), 1),
    lambda a: a.read(slice(0, None, 400_000)),
    lambda a: a.__setitem__(3_000_000, 1), lambda a: a.__setitem__(slice(3_000_000, None), 1),
    lambda a: a[[3_000_000]], lambda a: a[np.array(3_000_000)], lambda a: a.gather([0, 3_000_000]),
    lambda a: a.take([3_000_000], axis=0), lambda a: a.__setitem__([3_000_000], 1),
    lambda a: a.__setitem__(np.array(3_000_000), 1),
    lambda a: np.array(a.read(slice(5, None))), lambda a: a.pin().__enter__()])
def test_a_file_that_was_cut_short_is_an_os_error(numbers, use):
    with outcore.Runtime(budget="64MiB") as runtime:
        a = runtime.open(numbers, "r+", dtype="f8")
        cut(numbers)
        with pytest.raises(OSError) as caught:
            use(a)
        assert caught.value.errno == errno.EIO
        assert caught.value.filename == numbers
        assert a[3] == 3  # what is there still is
        a.close()


@pytest.mark.parametrize("use", [
    lambda a: a[[3]], lambda a: a[np.arange(a.shape[0]) == 3], lambda a: a.gather([3, 900]),
    lambda a: a.__setitem__([3, 900], 1), lambda a: a.prefetch([3, 900], wait=True)])
def test_rows_of_order_f_that_cannot_be_read_are_an_os_error(numbers, use):
    with outcore.open(numbers, "r+", (1000, 4000), "f8", order="F") as a:
        cut(numbers)
        with pytest.raises(OSError) as caught:
            use(a)
        assert caught.value.errno == errno.EIO


def test_fields_that_cannot_be_read_are_an_os_error(numbers):
    with outcore.open(numbers, dtype=[("x", "f8"), ("y", "f4"), ("z", "i4")]) as a:
        cut(numbers)
        for key in "x", ["x", "z"]:
            with pytest.raises(OSError):
                a.read(key)


def test_zeros_instead_of_signals_are_told_by_stats(numbers):
    with outcore.open(numbers, dtype="f8", on_error="zero") as a:
        cut(numbers)
        assert float(a[3_000_000:3_000_010].max()) in (0.0,)
        assert a.stats()["is_degraded"]


def test_a_touch_of_a_view_of_a_cut_file_is_a_signal(numbers):
    code = ("import outcore, os, sys, numpy\n"
            "v = numpy.asarray(outcore.open(sys.argv[1], dtype='f8'))\n"
            "os.truncate(sys.argv[1], 8192)\n"
            "print(v[3_000_000])\n")
    done = subprocess.run([sys.executable, "-c", code, numbers], capture_output=True, timeout=60,
                          check=False)
    assert done.returncode == -7 and done.stdout == b""


@pytest.fixture
def full_disk(tmp_path):
    """A file system of 4 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4m", "none", folder], check=False,
            capture_output=True).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_an_os_error_and_loses_nothing(full_disk):
    name = str(full_disk / "a.dat")
    with outcore.Runtime(budget="64MiB") as runtime:
        a = runtime.open(name, "w", shape=1 << 20, dtype="f8")  # 8 MiB
        a[...] = 7
        with pytest.raises(OSError) as caught:
            a.flush()
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, name)
        with pytest.raises(OSError):
            a.close()
        assert not a.closed and float(a.sum()) == 7 << 20
        assert a.stats()["is_degraded"]
        subprocess.run(["mount", "-o", "remount,size=16m", full_disk], check=True)
        a.flush()
        a.close()
    assert np.fromfile(name).sum() == 7 << 20


def test_a_full_scratch_disk_is_an_error_at_once(full_disk):
    with outcore.Runtime(budget="64MiB", scratch_dir=str(full_disk)) as runtime:
        with pytest.raises(OSError) as caught:
            runtime.zeros(1 << 20)
        assert caught.value.errno == errno.ENOSPC


def test_permission_is_an_os_error(path):
    np.zeros(10).tofile(path)
    os.chmod(path, 0o444)
    code = ("import outcore, os, sys\n"
            "os.setuid(65534) if os.geteuid() == 0 else None\n"
            "for mode in ('r+', 'w', 'a'):\n"
            "    try:\n"
            "        outcore.open(sys.argv[1], mode, shape=10, dtype='f8')\n"
            "    except PermissionError as error:\n"
            "        print(error.errno, error.filename == sys.argv[1])\n")
    os.chmod(os.path.dirname(path), 0o755)
    folder = os.path.dirname(path)
    while os.geteuid() == 0 and folder != "/":  # pytest's folders are its user's own
        os.chmod(folder, os.stat(folder).st_mode | 0o055)
        folder = os.path.dirname(folder)
        if folder == os.environ.get("TMPDIR", "/tmp"):  # banned-ok: the system's own folder
            break
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.stdout == "13 True\n" * 3, done.stderr


def test_a_call_in_another_thread_keeps_the_array_open(path):
    """close() refuses while a flush is under way: the region must not go under it."""
    import threading
    a = outcore.open(path, "w", shape=4 << 20, dtype="f8")
    a[...] = 1
    outcomes = set()
    for _ in range(50):
        a[::512] = 2
        thread = threading.Thread(target=a._region.flush, args=(0, a.nbytes))
        thread.start()
        try:
            a.close()
            a = outcore.open(path, "r+", dtype="f8")
            outcomes.add("closed")
        except BufferError as error:
            assert "another thread" in str(error)
            outcomes.add("refused")
        except ValueError:
            outcomes.add("closed")
        thread.join()
    assert outcomes <= {"closed", "refused"} and outcomes
    a.close()


@pytest.mark.parametrize("ask", [lambda url: outcore.open(url),
                                 lambda url: outcore.open(url, "w"),
                                 lambda url: outcore.open(url, "w", shape=(-1,), dtype="u1"),
                                 lambda url: outcore.open(url, "w", shape=9, dtype="u1")])
def test_no_message_has_the_password_of_a_server(ask):
    with pytest.raises((OSError, ValueError)) as caught:
        ask("far://me:topsecret@127.0.0.1:1?timeout=1s")
    assert "me:***@127.0.0.1:1" in str(caught.value)
    assert "topsecret" not in str(caught.value)


def test_what_people_see_of_an_array_has_no_password(monkeypatch):
    a = outcore.zeros(3)
    monkeypatch.setattr(a, "_location", location.locate("redis://:topsecret@127.0.0.1:1/grid"))
    for seen in (repr(a), a._repr_html_(), repr(a.info), a.info._repr_html_()):
        assert "topsecret" not in seen
        assert "***@127.0.0.1:1/grid" in seen
    assert a.url == "redis://:topsecret@127.0.0.1:1/grid"  # it can be opened by it
