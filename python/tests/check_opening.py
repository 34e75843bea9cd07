"""Modes, shapes, formats and URLs: what is opened, and what is left on the disk."""

import errno
import os
import pathlib

import numpy as np
import pytest

import outcore
from outcore import location


def test_reading_never_creates(path):
    for mode in ("r", "r+", "c", "readonly", "copyonwrite"):
        with pytest.raises(FileNotFoundError) as caught:
            outcore.open(path, mode, shape=4, dtype="f8")
        assert caught.value.errno == errno.ENOENT
        assert caught.value.filename == path
        assert not os.path.exists(path)


@pytest.mark.parametrize("mode", ["w", "w+", "x", "w-", "a", "write"])
def test_a_mode_that_creates_makes_a_file_of_the_right_length(path, mode):
    with outcore.open(path, mode, shape=(10, 3), dtype="f4", offset=100) as a:
        assert not a.read().any()
        a[...] = np.arange(30).reshape(10, 3)
    assert os.path.getsize(path) == 100 + 120
    assert np.array_equal(np.fromfile(path, "f4", offset=100), np.arange(30, dtype="f4"))


def test_exclusive_creation_leaves_a_file_that_is_there(path):
    pathlib.Path(path).write_bytes(b"mine")
    for mode in ("x", "w-"):
        with pytest.raises(FileExistsError) as caught:
            outcore.open(path, mode, shape=4, dtype="u1")
        assert caught.value.filename == path
    assert pathlib.Path(path).read_bytes() == b"mine"


def test_w_empties_what_was_there(path):
    np.ones(10000).tofile(path)
    with outcore.open(path, "w", shape=100, dtype="f8") as a:
        assert not a.read().any()
    assert os.path.getsize(path) == 800


def test_w_refuses_to_empty_what_is_open_here(path):
    a = outcore.open(path, "w", shape=100, dtype="f8")
    a[:] = 7
    with pytest.raises(OSError) as caught:
        outcore.open(path, "w", shape=100, dtype="f8")
    assert caught.value.errno == errno.EBUSY
    assert float(a.sum()) == 700
    a.close()
    outcore.open(path, "w", shape=100, dtype="f8").close()


def test_a_makes_longer_and_keeps_what_is_there(path):
    with outcore.open(path, "a", shape=100, dtype="f8") as a:
        a[:] = 1
    with outcore.open(path, "a", shape=1000, dtype="f8") as a:
        assert float(a.sum()) == 100
    assert os.path.getsize(path) == 8000


def test_r_plus_writes_and_does_not_make_longer(path):
    np.zeros(100).tofile(path)
    with outcore.open(path, "r+", dtype="f8") as a:
        a[3] = 3
    assert np.fromfile(path)[3] == 3
    with pytest.raises(ValueError, match="mode 'a'"):
        outcore.open(path, "r+", shape=101, dtype="f8")


def test_private_changes_stay_here(path):
    np.zeros(100).tofile(path)
    with outcore.open(path, "c", dtype="f8") as a:
        a[:] = 5
        a.flush()
        assert float(a.sum()) == 500
    assert not np.fromfile(path).any()


def test_a_read_only_array_refuses_writes(path):
    np.zeros(100).tofile(path)
    with outcore.open(path, dtype="f8") as a:
        for write in (lambda: a.__setitem__(0, 1), lambda: a.__setitem__(slice(None), 1),
                      lambda: a.__setitem__(list(range(20)), 1), lambda: a.fill(1)):
            with pytest.raises(ValueError, match="read-only"):
                write()
        assert not np.asarray(a).flags.writeable
        assert memoryview(a).readonly


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "c16", "M8[s]", [("x", "f4"), ("y", "i8", (2,))], "S5",
                                   ">i4", "?"])
def test_an_npy_file_is_as_numpy_would_make_and_read_it(tmp_path, order, dtype):
    name = tmp_path / "a.npy"
    wanted = np.zeros((7, 5), dtype, order)
    wanted.view("u1" if order == "C" else wanted.dtype)[...] = 1 if order == "C" else wanted[0, 0]
    with outcore.open(name, "w", shape=(7, 5), dtype=dtype, order=order) as a:
        a[...] = wanted
        assert a.order == order
    read = np.load(name)
    assert read.dtype == wanted.dtype and read.flags.f_contiguous == (order == "F")
    assert np.array_equal(read, wanted)
    with outcore.open(name) as a:
        assert (a.shape, a.dtype, a.order) == ((7, 5), np.dtype(dtype), order)
        assert np.array_equal(np.asarray(a), wanted)


def test_an_npy_file_of_another_shape_is_refused(tmp_path):
    name = tmp_path / "a.npy"
    np.save(name, np.ones((4, 4)))
    for wrong in ({"shape": 16}, {"dtype": "f4"}, {"order": "F"}, {"offset": 1}):
        with pytest.raises(ValueError, match="format='raw'"):
            outcore.open(name, **wrong)
    with outcore.open(name, format="raw") as a:
        assert a.dtype == np.uint8 and bytes(a[:6]) == b"\x93NUMPY"
    (tmp_path / "b.npy").write_bytes(b"no header at all")
    with pytest.raises(ValueError, match="no .npy header"):
        outcore.open(tmp_path / "b.npy")


def test_python_objects_are_refused(tmp_path):
    np.save(tmp_path / "o.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects"):
        outcore.open(tmp_path / "o.npy")
    with pytest.raises(ValueError, match="Python objects"):
        outcore.zeros(3, object)


@pytest.mark.filterwarnings("ignore:Stored array in format")
def test_fields_may_have_any_name(tmp_path, oddly_named):
    values = oddly_named
    np.save(tmp_path / "theirs.npy", values)
    with outcore.open(tmp_path / "theirs.npy") as a:
        assert a.dtype == values.dtype
        np.testing.assert_array_equal(a.read(), values)
    with outcore.open(tmp_path / "ours.npy", "w+", 5, values.dtype) as a:
        a[...] = values
        a.resize(7)
    np.testing.assert_array_equal(np.load(tmp_path / "ours.npy")[:5], values)


def test_an_npy_header_may_be_long(tmp_path):
    dtype = [(f"field_{i:04}", "<f4") for i in range(500)]
    with outcore.open(tmp_path / "a.npy", "w", 3, dtype) as a:
        a[1] = 7
    with outcore.open(tmp_path / "a.npy") as a:
        assert a.dtype == np.dtype(dtype) and a[1]["field_0499"] == 7


@pytest.mark.parametrize("text", [
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3", "{'descr': 7, 'shape': ()}", " {", "{}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': 3}", "\x00", "(" * 3000, "'" * 3, "[]",
    "{'descr': '|S0', 'fortran_order': False, 'shape': (3,)}",
    "{'descr': '<f8', 'fortran_order': 0, 'shape': (3,)}",
    f"{{'descr': '<f8', 'fortran_order': False, 'shape': (0, {1 << 80})}}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}",
    "{'descr': ('<f8', 'x'), 'shape': ()}"])
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_damaged_npy_header_is_a_value_error_that_names_the_file(tmp_path, text, version):
    raw = text.encode("latin-1").ljust(117) + b"\n"
    length = len(raw).to_bytes(2 if version == 1 else 4, "little")
    path = tmp_path / "damaged.npy"
    path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + length + raw + bytes(24))
    with pytest.raises(ValueError, match="damaged.npy"):
        outcore.open(path)


@pytest.mark.parametrize("shape", ["(-10,)", "(-1, -9)"])
def test_an_npy_file_of_a_negative_shape_is_refused(tmp_path, shape):
    name = tmp_path / "a.npy"
    np.save(name, np.zeros(1000))
    name.write_bytes(name.read_bytes().replace(b"(1000,)", shape.encode().ljust(7)))
    with pytest.raises(ValueError, match="npy header"):
        outcore.open(name, "r+")


@pytest.mark.parametrize("dtype", [("f4", 3), ("f4", (2, 3)), ([("x", "i2"), ("y", "u1")], (2,))])
@pytest.mark.parametrize("order", ["C", "F"])
def test_elements_that_are_arrays_are_axes(tmp_path, dtype, order):
    plain = np.memmap(tmp_path / "b", dtype, "w+", shape=5, order=order)
    with outcore.memmap(tmp_path / "a", dtype, "w+", shape=5, order=order) as a:
        assert (a.shape, a.dtype, a.nbytes) == (plain.shape, plain.dtype, plain.nbytes)
        for x in (a, plain):
            x[3] = 7
            x[1, 1] = 9
        assert np.array_equal(a, plain) and np.array_equal(a.gather([3, 1]), plain[[3, 1]])
        assert a.size == plain.size
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with outcore.open(tmp_path / "a", dtype=dtype, order=order) as a:
        assert np.array_equal(a, plain)
    with outcore.open(tmp_path / "c.npy", "w", 5, dtype, order) as a:
        a[...] = plain
    with outcore.open(tmp_path / "c.npy", dtype=dtype, shape=5) as a:
        assert np.array_equal(a, plain) and np.array_equal(np.load(tmp_path / "c.npy"), plain)


def test_shapes_and_offsets_are_as_in_memmap(path):
    np.arange(1000, dtype="i4").tofile(path)
    with outcore.open(path, dtype="i4", offset=12) as a:
        assert a.shape == (997,) and int(a[0]) == 3
    with outcore.open(path, dtype="i4", shape=(-1, 10)) as a:
        assert a.shape == (100, 10)
    with outcore.open(path, dtype="i4", shape=[5, 4], order="F") as a:
        assert np.array_equal(a, np.arange(20).reshape(5, 4, order="F"))
        assert a.strides == np.asarray(a).strides
    for wrong in ({"shape": 1001}, {"shape": (-1, 7)}, {"offset": 2}, {"offset": -4},
                  {"offset": 1 << 40}, {"shape": (-1, -1)}):
        with pytest.raises(ValueError):
            outcore.open(path, dtype="i4", **wrong)


def test_an_offset_beyond_a_page_need_not_be_a_multiple_of_anything(path):
    with outcore.open(path, "w", shape=5000, dtype="f8", offset=12345) as a:
        a[...] = np.arange(5000)
        assert a.offset == 12345
    assert np.array_equal(np.fromfile(path, "f8", offset=12345), np.arange(5000))


def test_empty_arrays_and_arrays_without_axes(path):
    with outcore.open(path, "w", shape=(0, 5), dtype="f8") as a:
        assert a.size == 0 and float(a.sum()) == 0 and a.read().shape == (0, 5)
    with outcore.open(path, "w", shape=(), dtype="f8") as a:
        a[...] = 3
        assert float(a) == 3 and a.ndim == 0
    assert np.fromfile(path)[0] == 3


@pytest.mark.parametrize("url", ["file:{}", "file://{}", "file:{}?direct=off", "sparse:{}",
                                 "sparse:{}?segment=64k"])
def test_urls_open_what_paths_do(path, url):
    url = url.format(path)
    with outcore.open(url, "w", shape=(100, 100), dtype="f8") as a:
        a[...] = 1
        assert a.filename == path
    with outcore.open(url, "r", shape=(100, 100), dtype="f8") as a:
        assert float(a.sum()) == 10000
    with pytest.raises(FileExistsError):
        outcore.open(url, "x", shape=1, dtype="f8")
    with outcore.open(url, "w", shape=(100, 100), dtype="f8") as a:
        assert float(a.sum()) == 0


@pytest.mark.parametrize("url", ["scratch:", "memory:"])
def test_scratch_and_memory_are_new_each_time(url):
    with outcore.open(url, "w", shape=10, dtype="f8") as a:
        assert a.filename is None and float(a.sum()) == 0
    for mode in ("r", "r+", "c"):
        with pytest.raises(ValueError, match="new each time"):
            outcore.open(url, mode, shape=10, dtype="f8")


def test_a_path_may_look_like_anything(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (pathlib.Path("a:b"), "with space?x=1", b"bytes", "\udcff", "ü"):
        outcore.open(pathlib.Path(os.fsdecode(name)), "w", shape=3, dtype="u1").close()
        assert os.path.getsize(name) == 3


@pytest.mark.parametrize("wrong, why", [
    ({"mode": "q"}, "mode 'q' is unknown"), ({"order": "K"}, "order 'K'"),
    ({"format": "csv"}, "format 'csv'"), ({"advise": "maybe"}, "advice 'maybe'"),
    ({"page": "5k"}, "power of two"), ({"page": "lots"}, "not a size"),
    ({"storage_options": {"key": 1}}, "storage_options"),
    ({"budget": "1k"}, "budget"), ({"policy": "best"}, "policy"),
    ({"budget": "1G", "runtime": outcore.default_runtime()}, "either"),
    ({"delivery": "pigeon"}, "delivery 'pigeon'")])
def test_what_cannot_be_is_a_value_error_that_says_so(path, wrong, why):
    np.zeros(10).tofile(path)
    with pytest.raises(ValueError, match=why):
        outcore.open(path, **{"mode": "r", **wrong})


@pytest.mark.parametrize("mode", ["w", "x", "a"])
def test_a_file_that_cannot_be_mapped_is_not_left_behind(path, mode):
    with pytest.raises(ValueError, match="power of two"):
        outcore.open(path, mode, shape=10, dtype="f8", page=5000)
    assert not os.path.exists(path)


def test_an_unknown_scheme_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(ValueError, match="scheme 's3'"):
        outcore.open("s3:bucket/a", "r+", shape=1, dtype="f8")
    with pytest.raises(ValueError, match="it is a folder"):
        outcore.open(tmp_path, "r")


def test_memmap_takes_numpys_arguments_in_numpys_order(path):
    ours = outcore.memmap(path, "f4", "w+", 16, (3, 4), "F")
    ours[:] = np.arange(12).reshape(3, 4)
    ours.flush()
    theirs = np.memmap(path, "f4", "r", 16, (3, 4), "F")
    assert np.array_equal(ours, theirs)
    for name in ("filename", "offset", "mode"):
        assert hasattr(ours, name)
    assert ours.filename == theirs.filename and ours.offset == theirs.offset
    del ours
    longer = outcore.memmap(path, "f4", mode="r+", shape=1000)  # numpy makes the file longer, too
    assert os.path.getsize(path) == 4000
    longer.close()
    assert outcore.memmap(path).shape == (4000,)


def test_memmap_takes_an_open_file(path):
    with open(path, "w+b") as file:
        file.write(b"0123456789")
        m = outcore.memmap(file, "u1", "r+")
    m[0] = ord("x")
    m.flush()
    assert pathlib.Path(path).read_bytes() == b"x123456789"


def test_scratch_arrays_take_numpys_arguments():
    assert outcore.empty(3).dtype == np.float64
    assert outcore.zeros((2, 3), "i4").shape == (2, 3)
    assert np.array_equal(outcore.full((2, 2), 1 + 2j), np.full((2, 2), 1 + 2j))
    assert outcore.full(2, 1, "f4").dtype == np.float32
    a = outcore.like(np.ones((2, 3), "i2", "F"))
    assert (a.shape, a.dtype, a.order) == ((2, 3), np.int16, "F")
    assert outcore.like(a, dtype="f8", shape=5).shape == (5,)


def test_a_store_whose_making_did_not_end_is_not_there(monkeypatch):
    def store_size(_):
        raise OSError(errno.EUCLEAN, "its making did not end")

    monkeypatch.setattr(location._core, "store_size", store_size)
    place = location.locate("redis://127.0.0.1:1/a")
    assert not place.exists()
    with pytest.raises(OSError) as caught:
        place.size_bytes()
    assert caught.value.errno == errno.EUCLEAN
