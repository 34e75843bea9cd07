"""What is made of an array without a copy, and how it keeps the array open."""

import gc
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import outcore


@pytest.fixture
def array(path):
    with outcore.open(path, "w", shape=(100, 50), dtype="f8") as a:
        a[...] = np.arange(5000).reshape(100, 50)
        yield a


def address(array):
    return np.asarray(array).__array_interface__["data"][0]


@pytest.mark.parametrize("make", [
    np.asarray, np.from_dlpack, memoryview, lambda a: a[3:7], lambda a: a[...], lambda a: a.T,
    lambda a: a[2], lambda a: a.reshape(50, 100), lambda a: np.asarray(a)[::3].T[1:],
    lambda a: np.frombuffer(a, "f8"), lambda a: np.array(a, copy=False),
    lambda a: a.__array_interface__, lambda a: a[1:].view("i8"), lambda a: iter(a[:3])])
def test_a_view_keeps_the_array_open(array, make):
    view = make(array)
    with pytest.raises(BufferError, match="view of its memory is alive"):
        array.close()
    assert not array.closed
    del view
    gc.collect()
    array.close()
    assert array.closed
    array.close()  # twice does nothing


def test_views_share_memory_and_copies_do_not(array):
    array[5:6][0, 0] = -1
    assert array[5, 0] == -1
    np.asarray(array)[6, 0] = -2
    assert array[6, 0] == -2
    np.from_dlpack(array)[7, 0] = -3
    assert array[7, 0] == -3
    memoryview(array)[8, 0] = -4.0
    assert array[8, 0] == -4
    copy = array.read(slice(0, 3))
    copy[:] = -99
    np.array(array)[:] = -99
    array[...].copy()[:] = -99
    array.__array__(copy=True)[:] = -99
    assert not (array.read() == -99).any()


def test_array_converts_as_numpy_2_asks(array):
    assert address(array.__array__()) == address(array)
    assert address(array.__array__(np.float64, copy=False)) == address(array)
    assert array.__array__("f4").dtype == np.float32
    with pytest.raises(ValueError, match="copy"):
        array.__array__("f4", copy=False)
    assert type(np.asarray(array)) is np.ndarray and not isinstance(array, np.ndarray)


def test_dtypes_without_a_buffer_format_are_shared_as_well(path):
    with outcore.open(path, "w", shape=10, dtype="M8[s]") as a:
        view = np.asarray(a)
        view[0] = np.datetime64("2020-01-01")
        assert a[0] == np.datetime64("2020-01-01T00:00:00")
        with pytest.raises(BufferError):
            a.close()
        del view


def test_arithmetic_gives_plain_arrays(array):
    for found in (array + 1, 2 * array, -array, array @ array.T, np.sin(array), array == array,
                  array[3:5] + 1, np.add(array[2:], 1), array.sum(axis=0), array.mean(axis=1),
                  array[[1, 2, 3]], array[array[:, 0] > 2500], np.concatenate([array, array])):
        assert type(found) is np.ndarray
    assert isinstance(array.sum(), np.float64) and isinstance(array[3, 4], np.float64)
    assert isinstance(array[2:].max(), np.float64)
    assert type(array[2:]) is outcore.View


def test_arithmetic_in_place_writes_through(array):
    before = array.read()
    array += 1
    np.multiply(array, 2, out=array)
    array[10:20] -= 5
    before = (before + 1) * 2
    before[10:20] -= 5
    assert isinstance(array, outcore.Array)
    assert np.array_equal(array, before)


@pytest.mark.parametrize("key", [
    3, -1, slice(10, 20), slice(None, None, -2), (3, 4), (slice(1, 3), 4), ..., (..., 2), None,
    [5, -1, 5, 99, 0, 1, 2, 3, 4], np.arange(99, 0, -3), (np.arange(10), np.arange(10)),
    np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), "mask", (slice(None), [1, 2])])
def test_every_index_means_what_it_means_to_numpy(array, key):
    plain = array.read()
    if isinstance(key, str):
        key = plain[:, 0] % 3 == 0
    assert np.array_equal(array[key], plain[key])
    if not (isinstance(key, tuple) and isinstance(key[0], np.ndarray)):
        assert np.array_equal(array.read(key), plain[key])
    array[key] = plain[key] + 0.5
    plain[key] = plain[key] + 0.5
    assert np.array_equal(array, plain)
    array[key] = 7
    plain[key] = 7
    assert np.array_equal(array, plain)


def test_wrong_indices_are_index_errors(array):
    for key in (100, -101, (0, 50), [0] * 9 + [100], [0] * 9 + [-101], "x", 1.5):
        with pytest.raises(IndexError):
            array[key]
        with pytest.raises(IndexError):
            array[key] = 1


def test_what_overlaps_is_copied_as_numpy_does(array):
    plain = array.read()
    array[1:] = array[:-1]
    plain[1:] = plain[:-1].copy()
    assert np.array_equal(array, plain)
    rows = np.arange(20, 0, -1)
    array[rows] = array[20:40]
    plain[rows] = plain[20:40].copy()
    assert np.array_equal(array, plain)


def test_ndarray_methods_are_there(array):
    plain = array.read()
    for name in ("sum", "min", "max", "mean", "std", "var", "argmax", "ptp", "prod", "cumsum",
                 "any", "all", "tolist", "ravel", "flatten", "nonzero", "trace"):
        if hasattr(plain, name):
            assert np.array_equal(getattr(array, name)(), getattr(plain, name)()), name
    assert len(array) == 100 and list(array[0][:2]) == [0, 1]
    assert (array.ndim, array.size, array.nbytes, array.itemsize) == (2, 5000, 40000, 8)
    assert np.array_equal(array.take([3, 4], axis=0), plain[3:5])
    assert 17.0 in array and np.array_equal(np.stack(list(array)), plain)


def test_leaving_the_block_with_a_live_view_is_a_buffer_error(path):
    with pytest.raises(BufferError):
        with outcore.open(path, "w", shape=10, dtype="f8") as a:
            view = a[:]
    assert view.sum() == 0 and not a.closed
    del view
    a.close()


def test_shape_and_dtype_are_not_assigned(array):
    shape, dtype = array.shape, array.dtype
    with pytest.raises(AttributeError, match="reshape"):
        array.shape = (-1,)
    with pytest.raises(AttributeError, match="view"):
        array.dtype = "i8"
    assert array[...].shape == array.shape == shape and array[...].dtype == array.dtype == dtype


def test_a_closed_array_says_so(array):
    array.close()
    for use in (lambda: array[0], lambda: array[:], lambda: array.sum(), lambda: array.flush(),
                lambda: np.asarray(array), lambda: array.stats(), lambda: array.__enter__()):
        with pytest.raises(ValueError, match="is closed"):
            use()
    assert array.closed and "closed" in repr(array) and array.shape == (100, 50)


def test_a_view_outlives_its_array(path):
    np.arange(100.0).tofile(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        view = outcore.open(path, dtype="f8")[10:]
        gc.collect()
    assert view.sum() == np.arange(10, 100).sum()


def test_a_leak_is_a_resource_warning_and_writes_back(path):
    a = outcore.open(path, "w", shape=100, dtype="f8")
    a[:] = 3
    with pytest.warns(ResourceWarning, match="unclosed outcore array"):
        del a
        gc.collect()
    assert np.fromfile(path).sum() == 300
    scratch, mapped = outcore.zeros(10), outcore.memmap(path, "f8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del scratch, mapped
        gc.collect()


def test_what_is_open_at_the_end_of_the_program_is_written_back(path):
    code = ("import outcore, sys\n"
            "a = outcore.open(sys.argv[1], 'w', shape=1000, dtype='f8')\n"
            "v = a[:]\n"
            "v[:] = 5\n")
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert np.fromfile(path).sum() == 5000


@pytest.mark.parametrize("cut", [
    lambda a: a[5:5], lambda a: a[:, 3:3], lambda a: a[len(a):], lambda a: a[:0].T,
    lambda a: a[::-1][:0], lambda a: a[5:5, ::2], lambda a: a[len(a):, 1:]])
def test_a_part_of_nothing_is_pickled(tmp_path, cut):
    np.save(tmp_path / "a.npy", np.zeros((100, 10)))
    with outcore.open(tmp_path / "a.npy") as a:
        part = cut(a)
        back = pickle.loads(pickle.dumps(part))
        assert type(back) is type(part) and (back.shape, back.dtype) == (part.shape, part.dtype)
        del part, back
