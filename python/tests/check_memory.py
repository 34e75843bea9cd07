"""Budget, flushing, prefetching, pinning, growing, and what is told about them."""

import errno
import gc
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import outcore


def test_the_budget_holds_whatever_is_touched(numbers, small):
    with small.open(numbers, "r+", dtype="f8") as a:
        a[...] = np.asarray(a) + 1
        assert float(a.sum()) == float(np.arange(1, (4 << 20) + 1, dtype="f8").sum())
        rows = np.random.default_rng(0).integers(0, len(a), 20000)
        assert np.array_equal(a[rows], rows + 1)
        stats = a.stats()
        assert stats["used_bytes_max"] <= 8 << 20
        assert stats["evictions"] > 0 and stats["written_bytes"] >= 24 << 20
    assert small.stats()["budget_bytes"] == small.budget == 8 << 20
    assert np.fromfile(numbers)[12345] == 12346


def test_a_budget_may_change_while_arrays_are_open(numbers):
    with outcore.Runtime(budget="32MiB") as runtime:
        a = runtime.open(numbers, dtype="f8")
        assert float(a.sum()) > 0
        runtime.budget = "8MiB"
        assert runtime.stats()["used_bytes"] <= 8 << 20
        assert int(a[4_000_000]) == 4_000_000
        with pytest.raises(ValueError, match="least"):
            runtime.budget = 4096
    assert a.closed and runtime.closed


def test_an_array_of_its_own_budget_ends_its_runtime(numbers):
    a = outcore.open(numbers, dtype="f8", budget="8MiB", policy="fifo")
    assert a.runtime.options["policy"] == ("fifo", "the program")
    assert a.runtime.budget == 8 << 20 and a.runtime is not outcore.default_runtime()
    a.close()
    assert a.runtime.closed


def test_a_runtime_with_a_live_view_does_not_end(numbers):
    runtime = outcore.Runtime(budget="8MiB")
    view = outcore.memmap(numbers, "f8", "r", runtime=runtime)[5:]
    gc.collect()  # the array is gone, its memory is not
    assert float(view[0]) == 5
    runtime.close()
    assert float(view[1]) == 6
    with pytest.raises(ValueError, match="runtime is closed"):
        runtime.open(numbers)


def test_sums_are_numpys_to_the_last_bit(tmp_path, small):
    random = np.random.default_rng(1)
    for dtype in ("f8", "f4", "i4", "u1", "?"):
        for count in (1, 7, 1000, 1_000_003, (3 << 20) + 5):
            plain = (random.standard_normal(count) * 100).astype(dtype)
            with small.open(tmp_path / "s.npy", "w", shape=count, dtype=dtype) as a:
                a[...] = plain
                for mine, numpys in ((a, plain), (a[::3], plain[::3]), (a[5:], plain[5:])):
                    for name in ("sum", "min", "max", "mean"):
                        if numpys.size == 0 or (dtype == "?" and name in ("min", "max")):
                            continue
                        found, wanted = getattr(mine, name)(), getattr(numpys, name)()
                        assert found == wanted and found.dtype == wanted.dtype, (dtype, count, name)
                del mine


@pytest.mark.parametrize("order", ["C", "F"])
def test_sums_of_columns_and_rows_are_numpys(tmp_path, small, order):
    plain = np.asarray(np.random.default_rng(2).standard_normal((600, 2048)), order=order)
    with small.open(tmp_path / "c.dat", "w", plain.shape, "f8", order) as a:
        a[...] = plain
        a.evict()
        for j in (0, 1, 2047):
            assert a[:, j].sum() == plain[:, j].sum()
            assert a[j % 600].sum() == plain[j % 600].sum()
        assert a.sum() == plain.sum()
        assert np.array_equal(a.sum(axis=0), plain.sum(axis=0))
        assert np.array_equal(a.read(), plain) and a.read().flags.f_contiguous == (order == "F")
        assert sum(p.shape[0 if order == "C" else 1] for p in a.iter_chunks()) == len(plain) or \
            order == "F"


def test_chunks_cover_an_array_in_order(numbers, small):
    with small.open(numbers, dtype="f8", shape=(-1, 1024)) as a:
        for chunk in (None, 100, "512KiB"):
            seen = [np.array(part[:, 0]) for part in a.iter_chunks(chunk)]
            assert np.array_equal(np.concatenate(seen), np.arange(len(a)) * 1024.0)
        assert len(seen) > 1 and seen[0].shape == (64,)


def test_flush_makes_others_see_what_was_written(path):
    with outcore.open(path, "w", shape=(1000, 1000), dtype="f8") as a:
        a[500:600] = 5
        a.flush(slice(500, 550))
        assert (np.fromfile(path).reshape(a.shape)[500:550] == 5).all()
        a.flush(range(550, 600))
        assert np.fromfile(path).sum() == 500_000
        a[0] = 1
        a.flush(wait=False).result(timeout=60)
        a.sync()
        assert np.fromfile(path)[999] == 1


def test_progress_counts_to_the_end(path):
    seen = []

    class Bar:
        count = 0

        def update(self, count):
            self.count += count

    bar = Bar()
    with outcore.open(path, "w", shape=9 << 20, dtype="f8") as a:
        a.flush(progress=lambda done, total: seen.append((done, total)))
        a.flush(progress=bar)
        a.prefetch(slice(0, 1 << 20), wait=True, progress=lambda done, total: seen.append(done))
        assert seen[2] == (72 << 20, 72 << 20) and seen[-1] == 8 << 20 and bar.count == 72 << 20
        with pytest.raises(TypeError, match="progress"):
            a.flush(progress=3)


def test_prefetch_brings_in_and_evict_gives_back(numbers, small):
    with small.open(numbers, dtype="f8", shape=(-1, 1024)) as a:
        a.prefetch(slice(0, 256), wait=True)
        assert a.resident_bytes >= 2 << 20
        assert sum(a.residency(16)[:1]) == 1 and a.residency(16)[-1] == 0
        a.evict()
        assert a.resident_bytes == 0 and sum(a.residency()) == 0
        a.prefetch([5, 4000, -1], wait=True)
        assert a.stats()["resident_bytes"] == 3 * 8192
        before = a.stats()["fills"]
        assert int(a[4000, 0]) == 4000 * 1024 and a.stats()["fills"] == before
        a.prefetch([7, 9])
        a.prefetch(slice(100, 120))
        with pytest.raises(IndexError):
            a.prefetch([4096])
        for word in ("random", "sequential", "normal", "auto"):
            a.advise(word)
        a.advise("cold", slice(0, 10))
        a.advise("dont-need", (3, 5))
        with pytest.raises(ValueError, match="advice"):
            a.advise("maybe")


def test_pinned_memory_stays(numbers, small):
    with small.open(numbers, dtype="f8") as a:
        with a.pin(slice(0, 1024)) as part:
            assert float(a.sum()) > 0  # four times the budget passes by
            assert a.residency(4 << 10)[0] == 1 and float(part[1023]) == 1023
            del part
        with pytest.raises(OSError) as caught, a.pin():
            pass
        assert caught.value.errno == 12  # ENOMEM
        assert float(a.sum()) > 0  # nothing of it stayed pinned


@pytest.mark.parametrize("suffix", [".dat", ".npy"])
def test_resize_keeps_what_is_there(tmp_path, suffix):
    name = str(tmp_path / f"a{suffix}")
    with outcore.open(name, "w", shape=(100, 10), dtype="f8") as a:
        a[...] = 1
        a.resize((100_000, 10))
        assert a.shape == (100_000, 10) and float(a.sum()) == 1000
        a[99_999] = 2
        view = a[:]
        with pytest.raises(BufferError):
            a.resize((200_000, 10))
        assert a.shape == (100_000, 10)
        del view
        a.resize((50, 10))
        assert float(a.sum()) == 500
        a.resize((60, 10))
        assert float(a.sum()) == 500
    with outcore.open(name, dtype="f8" if suffix == ".dat" else None) as a:
        assert a.size == 600 and float(a.sum()) == 500
        with pytest.raises(OSError):
            a.resize((70, 10))


def test_resize_within_the_reserve_keeps_views(path):
    with outcore.open(path, "w", shape=10, dtype="f8", reserve="1GiB") as a:
        view = a[:]
        a.resize(100_000_000)
        a[99_999_999] = 1
        view[0] = 7
        assert a[0] == 7 and os.path.getsize(path) == 800_000_000
        del view
        a.resize(10)
    assert os.path.getsize(path) == 80


def test_resize_cuts_no_file_under_another_array(path):
    with outcore.open(path, "w", shape=10_000, dtype="f8") as a:
        a[:] = 1
        a.flush()
        other = outcore.open(path, "r+", dtype="f8")
        with pytest.raises(OSError) as caught:
            a.resize(10)
        assert caught.value.errno == errno.EBUSY and caught.value.filename == path
        assert len(a) == 10_000 and other[9_999] == 1
        other.close()
        a.resize(10)
    assert os.path.getsize(path) == 80


@pytest.mark.parametrize("length", [100, 100_000])
@pytest.mark.parametrize("key", [slice(5, 10), slice(0, 100), 5, slice(0, 496), slice(3, 3), None])
def test_discard_of_less_than_a_page_reads_zero(path, length, key):
    plain = np.ones(length)
    with outcore.open(path, "w", shape=length, dtype="f8") as a:
        a[:] = 1
        a.discard(key)
        plain[... if key is None else key] = 0
        assert np.array_equal(a, plain)


def test_discard_reads_zero(path):
    with outcore.open(path, "w", shape=100_000, dtype="u1") as a:
        a[...] = 1
        a.discard(slice(100, 50_000))
        a.flush()
        assert int(a.sum()) == 50_100
    assert int(np.fromfile(path, "u1").sum()) == 50_100


def test_info_stats_and_repr_say_what_there_is(path):
    with outcore.open(path, "w", shape=(1000, 100), dtype="f8", page="64KiB") as a:
        a[...] = 1
        text = repr(a.info)
        for part in (path, "float64", "(1000, 100)", "Page", "64 KiB", "Resident", "Budget"):
            assert part in text
        starts = {line.index(" : ") for line in text.splitlines()[1:]}
        assert len(starts) == 1  # aligned
        assert "100% resident" in repr(a) and path in repr(a)
        for page in (a._repr_html_(), a.info._repr_html_(), a.runtime.info._repr_html_()):
            assert page.startswith("<div>") and "http" not in page
        assert "<svg" in a._repr_html_()
        wanted = {"faults", "fills", "evictions", "write_backs", "read_bytes", "resident_bytes",
                  "budget_bytes", "fault_p50_ns", "fault_p99_ns", "page_bytes", "is_degraded"}
        assert wanted <= set(a.stats())
    assert "closed" in a._repr_html_()


def test_system_calls_may_use_an_array_that_is_not_in_memory(numbers, small, tmp_path):
    with small.open(numbers, "r+", dtype="f8") as a:
        if a.stats()["delivery"] != "messages":
            pytest.skip("the system offers no fault messages")
        a.tofile(tmp_path / "copy")
        assert np.fromfile(tmp_path / "copy")[-1] == (4 << 20) - 1
        a.evict()
        with open(tmp_path / "copy", "rb", buffering=0) as file:
            file.seek(80)
            assert file.readinto(np.asarray(a)[:100]) == 800
        assert a[0] == 10


@pytest.mark.parametrize("order", ["C", "F"])
def test_tofile_writes_what_numpy_would(tmp_path, small, order):
    plain = np.asarray(np.arange(1 << 20, dtype="f4").reshape(1024, -1), order=order)
    with small.open(tmp_path / "a", "w", plain.shape, "f4", order, delivery="in-thread") as a:
        a[...] = plain
        a.tofile(tmp_path / "b")
        with open(tmp_path / "c", "wb") as file:
            a.tofile(file)
    plain.tofile(tmp_path / "d")
    wanted = (tmp_path / "d").read_bytes()
    assert (tmp_path / "b").read_bytes() == wanted == (tmp_path / "c").read_bytes()


def test_tofile_writes_the_gaps_between_fields_as_they_are(tmp_path, small):
    dtype = np.dtype([("x", "i2"), ("y", "f8")], align=True)
    raw = np.random.default_rng(0).integers(0, 256, (1000, 16), "u1")
    with small.zeros((10, 100), dtype) as a:
        np.asarray(a).view("u1")[...] = raw.reshape(10, -1)
        junk = [np.full(1 << 14, 0xAB, "u1") for _ in range(100)]
        del junk
        a.tofile(tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == raw.tobytes()


def test_tofile_takes_no_descriptor(tmp_path):
    with open(tmp_path / "b", "wb") as file, outcore.zeros(3) as a:
        with pytest.raises(TypeError):
            a.tofile(file.fileno())
        file.write(b"x")  # it is open


@pytest.mark.parametrize("delivery", ["in-thread", "messages", "mprotect"])
def test_threads_that_fault_at_once_end(numbers, delivery):
    try:
        runtime = outcore.Runtime(budget="8MiB", delivery=delivery)
        a = runtime.open(numbers, "r+", dtype="f8", shape=(-1, 512))
    except PermissionError as error:
        pytest.skip(str(error))
    wrong = []

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(30):
            rows = random.integers(0, len(a), 50)
            if not np.array_equal(a[rows][:, 0], rows * 512.0):
                wrong.append(seed)
            i = int(random.integers(0, len(a) - 64))
            if float(a[i:i + 64].sum()) != float(np.arange(i * 512, (i + 64) * 512.0).sum()):
                wrong.append(seed)
            if a[i, 3] != i * 512 + 3:
                wrong.append(seed)
            a.flush(slice(i, i + 8))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive()
    assert not wrong
    runtime.close()


def test_threads_open_and_close_arrays_at_once(tmp_path):
    kept = [outcore.zeros(10) for _ in range(300)]  # which each of them looks through
    wrong, before = [], sys.getswitchinterval()

    def work(name):
        for _ in range(60):
            try:
                with outcore.open(tmp_path / name, "w", 100, "f8") as a:
                    a[:] = 1
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(str(i),)) for i in range(4)]
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong and len(kept) == 300


def test_a_handler_of_a_signal_may_make_an_array_while_one_is_made():
    code = """if True:
        import faulthandler, signal, outcore
        from outcore import pager

        class Interrupted(pager.Pager):
            def __init__(self, *arguments, **options):
                super().__init__(*arguments, **options)
                if not seen:
                    signal.raise_signal(signal.SIGUSR1)

        def handle(*_):
            seen.append(None)
            seen[0] = outcore.zeros(3)
        seen, pager.Pager = [], Interrupted
        signal.signal(signal.SIGUSR1, handle)
        faulthandler.dump_traceback_later(300, exit=True)  # instead of waiting for ever
        a = outcore.zeros(3)
        print(a.runtime is seen[0].runtime, a.runtime is outcore.default_runtime())
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_ctrl_c_is_heard_in_long_calls(path):
    a = outcore.open(path, "w", shape=1 << 30, dtype="f8")  # 8 GiB of nothing

    def report(done, total):
        signal.raise_signal(signal.SIGINT)

    for call in (lambda: a.flush(progress=report), lambda: a.prefetch(wait=True, progress=report)):
        with pytest.raises(KeyboardInterrupt):
            call()
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: (seen.append(1), 1 / 0))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(ZeroDivisionError):
            while True:
                a.sum()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen
    a.close()
