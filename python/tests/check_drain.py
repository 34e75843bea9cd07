"""Drains: arrays that travel to another container in the background."""

import dataclasses
import errno
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import outcore

VALUES = np.arange(30_000.0).reshape(100, 300)


@pytest.fixture
def near(tmp_path):
    name = tmp_path / "near.oca"
    with outcore.Arrays(name, "w") as out:
        out["u"] = VALUES
        out.store("tiled", VALUES, tiles=(16, 64))
        out["title"] = "größer"
        out["step"] = 12
        out["u"].attrs["unit"] = "K"
    return name


@pytest.fixture
def far(tmp_path):
    return tmp_path / "far.oca"


def check_all(where):
    with outcore.Arrays(where) as run:
        assert sorted(run) == ["step", "tiled", "title", "u"]
        np.testing.assert_array_equal(run["u"][...], VALUES)
        np.testing.assert_array_equal(run["tiled"][...], VALUES)
        assert run["title"] == "größer" and run["step"] == 12
        assert dict(run["u"].attrs) == {"unit": "K"}


def until_it_moves(drain):
    while drain.progress.bytes_done == 0:
        assert not drain.wait(0.001)


def test_all_of_it_is_there(near, far):
    with outcore.Arrays(near) as run:
        drain = run.drain(far)
    assert drain.wait() is True and drain.wait(0) is True and drain.has_ended
    now = drain.progress
    assert dataclasses.is_dataclass(now) and isinstance(now, outcore.DrainProgress)
    assert now.arrays == now.arrays_done == 4 and now.array in ("step", "tiled", "title", "u")
    assert now.bytes == now.bytes_done == 2 * VALUES.nbytes + len("größer".encode()) + 8
    assert f"to '{far}', 4 of 4 arrays" in repr(drain) and repr(drain).endswith("ended>")
    check_all(far)
    check_all(near)


def test_paths_urls_and_names(near, far, monkeypatch):
    monkeypatch.chdir(near.parent)
    with outcore.drain("near.oca", "file:far.oca", names=["u", "step"]) as drain:
        pass
    assert drain.target == f"file:{far}" and sorted(outcore.Arrays(far)) == ["step", "u"]
    monkeypatch.chdir("/")
    with outcore.drain(f"file:{near}", os.fsencode(far), "title"):
        pass
    assert sorted(outcore.Arrays(far)) == ["step", "title", "u"]
    assert outcore.drain(near, far, (name for name in ["tiled"])).wait()
    check_all(far)


def test_what_is_removed_is_found_all_the_same(near, far):
    with outcore.drain(near, far, remove=True):
        pass
    check_all(near)
    with pytest.raises(KeyError):
        outcore.Arrays(near)["v"]
    far.unlink()
    # Nobody knows whether it is there.
    with pytest.raises(OSError, match="drained to") as failed:
        outcore.Arrays(near)["u"][...]
    assert failed.value.errno == errno.ENOLINK
    with pytest.raises(OSError, match="drained to"):
        "u" in outcore.Arrays(near)  # noqa: B015
    assert list(outcore.Arrays(near)) == []


def test_other_stores_take_them(near, tmp_path, small):
    url = f"sparse:{tmp_path}/s"
    with outcore.drain(near, url):
        pass
    check_all(url)
    with outcore.Arrays(url, runtime=small) as run:
        drain = run.drain(tmp_path / "back.oca")
    assert drain.wait()
    check_all(tmp_path / "back.oca")


@pytest.mark.parametrize("rate", [1, 1.0, "1", "1b", " 1B/s "])
def test_it_is_throttled_and_cancelled(near, far, rate):
    drain = outcore.drain(near, far, rate=rate)
    until_it_moves(drain)
    assert drain.wait(0) is False and drain.wait(-1) is False and drain.wait(0.06) is False
    assert not drain.has_ended
    drain.cancel()  # else it would take days
    for _ in range(2):
        with pytest.raises(OSError, match="cancelled") as caught:
            drain.wait()
        assert caught.value.errno == errno.ECANCELED
    assert drain.progress.arrays_done < 4
    with outcore.drain(near, far, rate="10G"):
        pass
    check_all(far)


def test_an_exception_cancels(near, far):
    with pytest.raises(KeyError, match="mine"), outcore.drain(near, far, rate=1) as drain:
        raise KeyError("mine")
    assert drain.has_ended
    with pytest.raises(OSError, match="cancelled"):
        drain.wait()


def test_what_is_dropped_is_cancelled(near, far):
    drain = outcore.drain(near, far, rate=1)
    del drain
    gc.collect()
    with outcore.Arrays(far, "a") as out:  # nobody writes it any more
        assert "u" not in out


def test_others_run_while_one_waits(near, far):
    drain = outcore.drain(near, far, rate=1)
    told = []

    def wait():
        with pytest.raises(OSError, match="cancelled") as caught:
            drain.wait()
        told.append(caught.value.errno)

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    drain.cancel()
    for thread in threads:
        thread.join()
    assert told == [errno.ECANCELED] * 4


def interrupt(*ignored):
    raise KeyboardInterrupt


def test_ctrl_c_ends_the_wait(near, far):
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        drain = outcore.drain(near, far, rate=1)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            drain.wait()
        assert not drain.has_ended  # it goes on
        drain.cancel()
        with pytest.raises(OSError, match="cancelled"):
            drain.wait()
        with pytest.raises(KeyboardInterrupt), outcore.drain(near, far, rate=1) as drain:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert drain.has_ended  # a block does not leave it behind
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_interpreter_that_ends_cancels(near, far):
    program = "import sys, outcore; d = outcore.drain(sys.argv[1], sys.argv[2], rate=1)"
    done = subprocess.run([sys.executable, "-c", program, os.fspath(near), os.fspath(far)],
                          capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with outcore.drain(near, far):
        pass
    check_all(far)


def test_a_forked_child_has_none(near, far):
    program = textwrap.dedent("""
        import errno, os, sys, outcore
        drain = outcore.drain(sys.argv[1], sys.argv[2], rate=1)
        child = os.fork()
        if child == 0:
            for use in (drain.wait, drain.cancel, lambda: drain.progress, lambda: drain.has_ended):
                try:
                    use()
                except PermissionError as error:
                    assert "parent" in str(error), error
                else:
                    os._exit(1)
            assert "of the parent" in repr(drain)
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert not drain.has_ended
    """)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program, os.fspath(near),
                           os.fspath(far)],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_busy_writer_keeps_its_arrays(near, far):
    with outcore.Arrays(near, "a") as out:
        out["late"] = 1
        drain = out.drain(far, remove=True)
        with pytest.raises(OSError, match="everything is there") as caught:
            drain.wait()
        assert caught.value.errno == errno.EBUSY
    check_all(far)
    assert "late" in outcore.Arrays(near)


def test_another_array_of_the_name_is_left_alone(near, far):
    with outcore.Arrays(far, "w") as out:
        out["u"] = np.ones(3)
    with pytest.raises(FileExistsError, match="'u'"), outcore.drain(near, far):
        pass
    assert outcore.Arrays(far)["u"].shape == (3,)


def test_wrong_input_is_one_line(near, far, tmp_path):
    run = outcore.Arrays(near)
    link = tmp_path / "link.oca"
    link.symlink_to(near)
    for same in (near, f"file:{near}", link):
        with pytest.raises(ValueError, match="both are one"):
            run.drain(same)
    for rate in (0, -1, "fast", float("nan"), True):
        with pytest.raises(ValueError):
            run.drain(far, rate=rate)
    with pytest.raises(ValueError, match="names is empty"):
        run.drain(far, [])
    with pytest.raises(TypeError):
        run.drain(far, [1])
    with pytest.raises(FileNotFoundError, match="u") as caught:
        run.drain(far, "u9")
    assert caught.value.filename == os.fspath(near)
    with pytest.raises(FileNotFoundError) as caught:
        outcore.drain(tmp_path / "no.oca", far)
    assert caught.value.filename == os.fspath(tmp_path / "no.oca")
    with pytest.raises(FileNotFoundError) as caught:
        run.drain(tmp_path / "no" / "far.oca")
    assert caught.value.filename == os.fspath(tmp_path / "no" / "far.oca")
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("x" * 10000)
    with pytest.raises(OSError, match="not a container"):
        run.drain(thesis)
    assert not far.exists() and thesis.read_text() == "x" * 10000
    with outcore.drain(near, far) as drain, pytest.raises(ValueError):
        drain.wait(float("nan"))
    run.close()
    with pytest.raises(ValueError, match="closed"):
        run.drain(far)
