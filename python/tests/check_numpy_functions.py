"""NumPy's functions that write into arrays, and attributes that code for ndarrays expects."""

import io
import pickle
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import xarray

import outcore


@pytest.fixture
def twins(small):
    plain = np.arange(120000.0).reshape(300, 400)
    array = small.zeros(plain.shape)
    array[...] = plain
    yield array, plain
    array.close()


@pytest.mark.parametrize("write", [
    lambda a: np.copyto(a, 7),
    lambda a: np.copyto(a, np.arange(400)),
    lambda a: np.copyto(a, np.arange(400, dtype="f4")),
    lambda a: np.copyto(a, [[3]]),
    lambda a: np.copyto(a, -1, where=np.arange(400) % 3 == 0),
    lambda a: np.copyto(dst=a, src=np.ones(400, "i2"), casting="safe"),
    lambda a: np.putmask(a, np.arange(120000).reshape(300, 400) % 7 == 0, [-1, -2, -3]),
    lambda a: np.place(a, np.arange(120000).reshape(300, 400) % 7 == 0, [-1, -2, -3]),
    lambda a: np.put(a, [5, 70000], [1, 2]),
    lambda a: np.put_along_axis(a, np.full((300, 1), 3), -5.0, 1),
    lambda a: np.fill_diagonal(a, 9),
    lambda a: a.partition(50),
    lambda a: np.add(a, 1, out=a),
    lambda a: np.cumsum(a, axis=1, out=a),
    lambda a: np.clip(a, 10, 500, out=a),
    lambda a: np.ndarray.sort(np.asarray(a)[:, ::-1]),
])
def test_functions_that_write_into_an_array(twins, write):
    array, plain = twins
    write(array)
    write(plain)
    assert np.array_equal(array, plain)


@pytest.mark.parametrize("write", [
    lambda a: np.copyto(a, 1j), lambda a: np.copyto(a, np.ones(7)),
    lambda a: np.copyto(a, np.ones((1, 300, 400))[None]), lambda a: np.copyto(a, "x"),
    lambda a: np.putmask(a, [True], "x")])
def test_what_numpy_refuses_is_refused(twins, write):
    array, plain = twins
    kind = None
    try:
        write(plain)
    except (TypeError, ValueError) as error:
        kind = type(error)
    if kind is None:
        write(array)
        assert np.array_equal(array, plain)
    else:
        with pytest.raises(kind):
            write(array)


def test_functions_give_what_they_give_of_ndarrays(twins):
    array, plain = twins
    for function in (np.sum, np.mean, np.shape, np.sort, np.median, np.ravel, np.atleast_2d,
                     lambda a: np.concatenate([a, a]), lambda a: np.stack((a, a)),
                     lambda a: np.where(a > 3, a, 0), lambda a: np.split(a, 3)[1], np.unique,
                     lambda a: np.histogram(a)[0], np.isnan, np.copy, np.zeros_like, np.max,
                     lambda a: np.einsum("ij->j", a), lambda a: np.linalg.norm(a)):
        found, expected = function(array), function(plain)
        assert np.array_equal(found, expected) and type(found) is not outcore.Array
    assert type(np.concatenate([array, array])) is type(np.copy(array)) is np.ndarray
    assert type(np.transpose(array)) is type(np.split(array, 2)[0]) is outcore.View
    found = np.sum(array, axis=0, out=np.zeros(400))
    assert np.array_equal(found, plain.sum(axis=0))


def test_attributes_of_ndarrays(twins):
    array, plain = twins
    assert array.data.tobytes() == plain.tobytes() and np.array_equal(array.mT, plain.mT)
    assert np.array_equal(pickle.loads(array.dumps()), plain)
    file = io.BytesIO()
    array.dump(file)
    assert np.array_equal(pickle.loads(file.getvalue()), plain)


def test_memmap_has_the_file_name_that_it_was_given(tmp_path):
    path = tmp_path / "a.dat"
    m = outcore.memmap(path, mode="w+", shape=10)
    assert m.filename == path and isinstance(m.filename, Path) and m[2:5].filename == path
    m[:] = 5
    m.close()
    with open(path, "r+b") as file:
        m = outcore.memmap(file)
        assert m.filename == m[3:].filename == str(path) and m.sum() == 50
        m.close()
    m = outcore.memmap(str(path), mode="r")
    assert m.filename == str(path)
    m.close()


def test_memmap_of_a_file_without_a_name():
    with tempfile.TemporaryFile() as file:
        file.write(bytes(range(100)))
        m = outcore.memmap(file, dtype="u1")
        assert m.filename is None and m.shape == (100,) and m[99] == 99
        m[0] = 77
        m.flush()
        with pytest.raises(pickle.PicklingError, match="no name"):
            pickle.dumps(m)
        m.close()
        file.seek(0)
        assert file.read(1) == bytes([77])


def test_scratch_lies_in_the_folder_that_is_named(tmp_path, small):
    for make in (outcore.zeros, outcore.empty, small.empty, small.zeros):
        with make((10, 10), scratch_dir=tmp_path) as a:
            assert a.url == f"scratch:{tmp_path}" and a[3, 3] == 0
    for make in (outcore.full, small.full):
        with make(4, 7, scratch_dir=str(tmp_path)) as a:
            assert a.tolist() == [7] * 4
    with pytest.raises(FileNotFoundError):
        outcore.zeros(10, scratch_dir=tmp_path / "none")


def test_a_dataset_is_pickled_by_reference(tmp_path):
    np.save(tmp_path / "t.npy", np.arange(20000.0).reshape(100, 200))
    with xarray.open_dataset(tmp_path / "t.npy", engine="outcore", name="t") as ds:
        text = pickle.dumps(ds)
        assert len(text) < 4000
        with pickle.loads(text) as back:
            assert float(back.t[99, 199]) == 19999
    outcore.store_dataset(xarray.Dataset({"u": ("x", np.arange(5000.0))}), tmp_path / "run.oca")
    with xarray.open_dataset(tmp_path / "run.oca", engine="outcore") as ds:
        text = pickle.dumps(ds)
        assert len(text) < 4000
        with pickle.loads(text) as back:
            assert float(back.u[4999]) == 4999


def test_an_archive_is_refused_with_the_remedy(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    with pytest.raises(ValueError, match=r"a\.npz: .*unzip it"):
        outcore.open(tmp_path / "a.npz")
    with outcore.open(tmp_path / "a.npz", format="raw") as a:
        assert bytes(a[:2]) == b"PK"


@pytest.mark.parametrize("call", [
    lambda a: a.prefetch(1.5), lambda a: outcore.Runtime(budget="1G", no_such_option=1),
    lambda a: outcore.Runtime(budget="1G", prefetch_threads="many"), lambda a: a.pin("x"),
    lambda a: outcore.Runtime(budget="1G", page=3.5), lambda a: a.advise(3),
    lambda a: outcore.Runtime(policy=7), lambda a: outcore.zeros(3, delivery=3),
    lambda a: outcore.zeros(3, advise=["x"]), lambda a: a.residency("x"),
    lambda a: outcore.zeros(3, on_error=1), lambda a: a.advise("no-such-word"),
    lambda a: outcore.zeros(3, frames=b"x"), lambda a: a.evict(b"x"),
    lambda a: outcore.Runtime(budget=[1]), lambda a: outcore.zeros(3, budget={}),
    lambda a: a.residency(-1), lambda a: a.residency(1.5),
    lambda a: setattr(a.runtime, "budget", 1 << 70)])
def test_messages_speak_of_python(call):
    try:
        call(outcore.zeros((300, 400))).__enter__()  # of pin
        text = ""
    except (TypeError, ValueError, IndexError, OSError) as error:
        text = str(error)
    assert text
    for word in ("std::", "_core", "incompatible function", "arg0", "nanobind", "bad_cast"):
        assert word not in text, text


def test_names_in_a_container_are_text(tmp_path):
    with outcore.Arrays(tmp_path / "run.oca", "w") as run:
        run["u"] = np.arange(5)
        for call in (lambda: run[5], lambda: run.store(5, 1), lambda: run.alloc(5, 3),
                     lambda: run.rename("u", 5), lambda: run.__delitem__(5),
                     lambda: run["u"].attrs.__setitem__(5, "x")):
            with pytest.raises(TypeError, match="is text, not 5"):
                call()


@pytest.mark.parametrize("dtype", ["f8", ">f8", "M8[s]", "S7"])
@pytest.mark.parametrize("ufunc", [np.greater, np.maximum, np.not_equal])
def test_an_operation_in_place_leaves_what_is_masked(dtype, ufunc, small):
    rng = np.random.default_rng(1)
    plain = rng.integers(1, 100, 100_000).astype("i8").astype(dtype)
    value, where = plain[::-1].copy(), rng.random(len(plain)) < 0.5
    with small.zeros(len(plain), dtype) as a:
        a[:] = plain
        for x in (plain, a):
            try:
                ufunc(x, value, out=x, where=where, casting="unsafe")
            except TypeError:
                pytest.skip(f"NumPy has no {ufunc.__name__} of {dtype} into {dtype}")
        assert np.array_equal(a, plain)


@pytest.mark.parametrize("dtype", ["f8", ">f8", "m8[s]"])
def test_an_operation_in_place_takes_no_copy(dtype, small):
    one = np.ones((), "i8").astype(dtype)
    with small.zeros(4 << 20, dtype) as a:  # 32 MiB
        tracemalloc.start()
        try:
            a += one
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < a.nbytes // 8
        assert (a[::100_000] == one).all()


@pytest.mark.parametrize("dtype", [
    np.dtype([("a", "i1"), ("b", "f8")], align=True),
    np.dtype({"names": ["b", "a"], "formats": ["f8", "i4"], "offsets": [8, 0]}),
    np.dtype({"names": ["x"], "formats": ["f4"], "offsets": [4], "itemsize": 12}),
    np.dtype([("a", "i1"), ("when", "M8[ns]")], align=True), np.dtype("V8"), np.dtype("M8[s]"),
    np.dtype([("a", "i1"), ("n", [("x", "f4"), ("when", "m8[D]")])])])
def test_numpy_sees_the_same_records(path, dtype):
    with outcore.open(path, "w+", 7, dtype) as a:
        for seen in np.asarray(a), np.asanyarray(a), np.array(a):
            assert seen.dtype == dtype and seen.shape == (7,)
        assert np.shares_memory(np.asarray(a), a.view(np.ndarray))
        np.asarray(a).view("u1" if dtype.kind != "M" else "u8")[...] = 1
        np.testing.assert_array_equal(a.read(), np.asarray(a))


def test_take_by_a_mask_is_what_numpy_says(path):
    mask = [True, False] * 3 + [True]
    with outcore.open(path, "w+", 7, "f8") as a:
        a[...] = np.arange(7) + 3
        assert a.take(mask, axis=0).tolist() == (np.arange(7) + 3.0).take(mask, axis=0).tolist()
        assert a.take([3, -1], axis=0).tolist() == [6, 9]


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_without_axes_is_a_number_that_copies(path, order):
    with outcore.open(path, "w+", (5, 4), "f8", order=order) as a:
        a[...] = 1
        for old in a[np.array(3)], a.read(np.array(3)), a.read((np.array(3), slice(None))):
            a[np.array(3)] = 7
            assert old.tolist() == [1] * 4 and a[3].tolist() == [7] * 4
            a[3] = 1


def test_parts_of_large_elements_are_no_larger_than_a_block(path):
    view = np.zeros((128, 16), "V65536", order="F")
    runtime = outcore.Runtime(budget="64MiB")
    with runtime.open(path, "w+", view.shape, view.dtype, order="F") as a:
        parts = list(outcore.walk.columns_of(a.view(np.ndarray), a._here().region, np.arange(128),
                                             8 << 20))
        assert max((p.rows.stop - p.rows.start) * (p.columns.stop - p.columns.start)
                   for p in parts) <= 128
        seen = sum((p.rows.stop - p.rows.start) * (p.columns.stop - p.columns.start)
                   for p in parts)
        assert seen == view.size
    runtime.close()


def test_a_copy_is_one(path):
    with outcore.open(path, "w+", 7, [("x", "f8"), ("y", "f4")]) as a:
        for key in "x", ["x", "y"], np.array(3), ..., (), slice(None):
            assert not np.may_share_memory(a.read(key), a.view(np.ndarray)), key
        assert a.read("x").dtype == np.float64 and a.read(["x", "y"]).dtype == a.dtype


@pytest.mark.parametrize("shape", [(50, 60), (50, 6, 7), (50,), (3, 1000)])
def test_rows_in_order_f_are_as_numpys(path, shape, monkeypatch):
    rng = np.random.default_rng(1)
    right = np.asarray(rng.random(shape), order="F")
    monkeypatch.setattr(outcore.walk, "_PART_ELEMENTS_MAX", 40)
    with outcore.open(path, "w+", shape, "f8", order="F", page="4KiB") as a:
        a[...] = right
        few = rng.integers(-shape[0], shape[0], 9)
        for key in few, few.tolist(), few.reshape(3, 3), right.reshape(shape[0], -1)[:, 0] > 0.5:
            np.testing.assert_array_equal(a[key], right[key])
        a.prefetch(few, wait=True)
        for value in 3, rng.random((9, *shape[1:])), rng.random(shape[1:]):
            a[few] = value
            right[few] = value
            np.testing.assert_array_equal(a.read(), right)
