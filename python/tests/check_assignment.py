"""Assignments and reads of arrays of every size are NumPy's: random ones, from a seed.

OUTCORE_CASES=20000 tries more of them, OUTCORE_SEED=7 others.
"""

import contextlib
import os
import warnings

import numpy as np
import pytest

import outcore

_CASES = int(os.environ.get("OUTCORE_CASES", "400"))
_SEED = int(os.environ.get("OUTCORE_SEED", "19"))
_RECORD = [("i", "i8"), ("x", "f4")]
_DTYPES = ["f8", "f4", "f2", ">i4", "u1", "i8", "bool", "c16", "S5", "U3", "M8[s]", "m8[us]",
           _RECORD, [("p", "u2"), ("v", "f4", (3,))], [("r", [("a", "i2"), ("b", "S3")])], "V7"]
_BLOCK = 1 << 16  # of a runtime of 8 MiB


def _shape_of(rng, itemsize):
    """Shapes of about none, some, one block, a few blocks."""
    count = max(1, int(rng.choice([1, 40, _BLOCK - itemsize, _BLOCK, _BLOCK + itemsize,
                                   2.5 * _BLOCK])) // itemsize)
    ndim = int(rng.integers(0, 4))
    if ndim == 0:
        return ()
    if ndim == 1:
        return (count,)
    inner = tuple(int(n) for n in rng.integers(1, 4, ndim - 1))
    rows = max(1, count // int(np.prod(inner)))
    return (rows, *inner) if rng.random() < 0.7 else (*inner, rows)


def _scalar_of(rng, dtype):
    pool = {"f": [1.5, 7, np.float32(2.5), True, None, "3.5", np.nan],
            "i": [3, -2, 2.75, np.int16(9), "12", 1 << 70, np.float64(1e30), True, None],
            "u": [3, 300, -1, np.uint8(7), 2.5, "x"], "b": [True, 0, 2.5, "", np.bool_(True)],
            "c": [1 + 2j, 3, "1+2j", np.complex64(2j)], "S": [b"ab", "abcdefgh", 12, 3.5, b""],
            "U": ["ä", "abcdef", b"xy", 12, np.str_("q")],
            "M": ["2020-01-02", np.datetime64("2021", "Y"), 5, None, "no date"],
            "m": [np.timedelta64(3, "s"), 7, None, "7"],
            "V": [(1, 2.5), (1, (1, 2, 3)), ((7, b"ab"),), b"abcdefg", 4, (1,), (1, 2, 3), "s"]}
    return pool[dtype.kind][int(rng.integers(len(pool[dtype.kind])))]


def _random_array(rng, dtype, shape):
    bits = np.zeros(shape, dtype)
    count = bits.size
    if dtype.kind in "fcM":
        bits[...] = rng.integers(0, 1000, shape).astype(dtype)
    elif dtype.kind == "b":
        bits[...] = rng.random(shape) < 0.5
    elif dtype.kind == "U":
        bits[...] = rng.integers(0, 999, shape).astype("U3")
    else:
        data = rng.integers(1, 100, count * dtype.itemsize, "u1").tobytes()
        bits[...] = np.frombuffer(data, dtype, count).reshape(shape)
    return bits


def _value_of(rng, dtype, shape):
    """A value that goes into this shape, or nearly."""
    shape = list(shape)
    for axis in range(len(shape)):
        if rng.random() < 0.25:
            shape[axis] = 1
    while shape and rng.random() < 0.3:
        shape = shape[1:]
    if rng.random() < 0.2:
        shape = [1] * int(rng.integers(1, 3)) + shape
    if rng.random() < 0.1:
        shape = [*shape, 2]
    kind = int(rng.integers(0, 8))
    if kind <= 2:
        return _scalar_of(rng, dtype)
    if kind == 3 and np.prod(shape, dtype=int) <= 3000:
        return _random_array(rng, dtype, shape).tolist()
    if kind == 4:
        # NumPy itself crashes on some texts for dates and records.
        other = rng.choice(["f8", "i2"] if dtype.kind in "VMm" else ["f8", "i2", "S4"])
        return _random_array(rng, np.dtype(str(other)), shape)
    if kind == 5:
        return _random_array(rng, dtype, shape)[()]
    if kind == 6:
        return [_scalar_of(rng, dtype) for _ in range(int(shape[-1] if shape else 1) % 50)]
    return np.asfortranarray(_random_array(rng, dtype, shape))


def _slice_of(rng, n):
    step = int(rng.choice([1, 1, 1, 2, 3, -1, -2]))
    ends = [None if rng.random() < 0.6 else int(rng.integers(-n - 1, n + 2)) for _ in range(2)]
    return slice(*ends, step)


def _key_of(rng, shape):
    pick = rng.random()
    if pick < 0.2 or not shape:
        return [..., slice(None), (), None][int(rng.integers(4))] if shape else \
            [..., (), None][int(rng.integers(3))]
    n = shape[0]
    if pick < 0.3:
        rows = rng.integers(-n, n, int(rng.choice([1, 7, 8, 9, 300])))
        return rows if rng.random() < 0.5 else rows.tolist()
    if pick < 0.36:
        return [rng.random(n) < 0.5, rng.random(shape) < 0.5, np.zeros(n, bool)][
            int(rng.integers(3))]
    if pick < 0.38:
        return [n, -n - 1, 1.5, "x", [0] * 8 + [n], rng.random(n + 1) < 0.5][int(rng.integers(6))]
    keys = []
    for length in shape[:int(rng.integers(1, len(shape) + 1))]:
        kind = rng.random()
        keys.append(int(rng.integers(-length, length)) if kind < 0.3 else
                    rng.integers(0, length, 9) if kind < 0.37 else _slice_of(rng, length))
    for extra in (..., None):
        if rng.random() < 0.2:
            keys.insert(int(rng.integers(0, len(keys) + 1)), extra)
    return tuple(keys) if len(keys) > 1 or rng.random() < 0.5 else keys[0]


def _outcome(act):
    """What it gives, or the class of what it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return act(), None
        except Exception as error:
            for kind in (IndexError, OverflowError, TypeError, ValueError):
                if isinstance(error, kind):
                    return None, kind
            raise


def _same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@contextlib.contextmanager
def _twins(runtime, rng):
    dtype = np.dtype(_DTYPES[int(rng.integers(len(_DTYPES)))])
    if dtype.kind == "V" and dtype.names is None and rng.random() < 0.3:
        dtype = np.dtype("V70000")  # one item is more than a block
    order = "F" if rng.random() < 0.3 else "C"
    plain = np.array(_random_array(rng, dtype, _shape_of(rng, dtype.itemsize)), order=order)
    with runtime.zeros(plain.shape, dtype, order) as array:
        array[...] = plain
        yield array, plain
        assert _same(array, plain)


def _assign(rng, array, plain, name):
    key = _key_of(rng, plain.shape)
    found = _outcome(lambda: plain[key])
    shape = np.shape(found[0]) if found[1] is None else ()
    value = _value_of(rng, plain.dtype, shape)
    before = plain.copy()
    expected = _outcome(lambda: plain.__setitem__(key, value))[1]
    got = _outcome(lambda: array.__setitem__(key, value))[1]
    about = f"{name}: {plain.dtype} {plain.shape} [{key!r}] = {value!r}"
    assert got == expected, f"{about}: {got}, NumPy {expected}"
    if expected is None:
        assert _same(array, plain), about
    else:  # how far it went is not told
        plain[...] = before
        array[...] = before


def _read(rng, array, plain, name):
    key = _key_of(rng, plain.shape)
    expected, got = _outcome(lambda: plain[key]), _outcome(lambda: array[key])
    about = f"{name}: {plain.dtype} {plain.shape} [{key!r}]"
    assert got[1] == expected[1], f"{about}: {got[1]}, NumPy {expected[1]}"
    if expected[1] is None:
        assert _same(got[0], expected[0]), about
        assert isinstance(got[0], np.ndarray) == isinstance(expected[0], np.ndarray), about
        assert _same(array.read(key), expected[0]) or np.ndim(expected[0]) == 0, about


def _compute(rng, array, plain, name):
    if plain.dtype.kind not in "fiu":
        return
    other = _random_array(rng, plain.dtype, plain.shape[int(rng.integers(0, plain.ndim + 1)):])
    ufunc = [np.add, np.multiply, np.maximum, np.subtract][int(rng.integers(4))]

    def operate(x):
        if rng_kind == 0:
            x += other
        elif rng_kind == 1:
            return ufunc(x, other, out=x) is x
        else:
            return np.asarray(ufunc(x, other, where=other > 50, out=x))
        return None

    rng_kind = int(rng.integers(3))
    expected, got = _outcome(lambda: operate(plain)), _outcome(lambda: operate(array))
    assert got[1] == expected[1], name
    assert _same(array, plain), name
    assert expected[0] is None or _same(got[0], expected[0]), name


def test_random_assignments_reads_and_operations_are_numpys(small):
    for case in range(_CASES):
        name = f"OUTCORE_SEED={_SEED} case {case}"
        rng = np.random.default_rng((_SEED, case))
        with _twins(small, rng) as (array, plain):
            for _ in range(3):
                _assign(rng, array, plain, name)
            _read(rng, array, plain, name)
            _compute(rng, array, plain, name)


@pytest.mark.parametrize("rows", [100, 1_000_000])
def test_a_tuple_is_a_record_whatever_the_size(rows):
    with outcore.zeros((rows, 2), _RECORD) as a:
        a[...] = (1, 2.5)
        assert a[0].tolist() == a[rows - 1].tolist() == [(1, 2.5), (1, 2.5)]
        a[list(range(8))] = (3, 4.5)
        assert a[7].tolist() == [(3, 4.5), (3, 4.5)] and a[8, 0].tolist() == (1, 2.5)
        a[...] = np.full((1, 1, rows, 2), np.array((5, 6.5), _RECORD))
        assert a[rows - 1, 1].tolist() == (5, 6.5)


def test_of_a_row_that_is_named_twice_the_last_value_stays(small):
    with small.zeros((4000, 512), "f8") as a:  # twice the budget
        index = np.random.default_rng(1).integers(0, 4000, 9000)
        a[index] = np.arange(9000.0)[:, None]
        expected = np.zeros(4000)
        expected[index] = np.arange(9000.0)
        assert np.array_equal(a[:, 511], expected)


@pytest.mark.parametrize("page", ["64KiB", "256KiB"])
def test_scattered_rows_read_each_page_once(page, numbers):
    with outcore.open(numbers, "r", shape=(-1, 64), dtype="f8", budget="8MiB", page=page,
                      advise="random") as a:
        index = np.random.default_rng(5).integers(0, len(a), 20000)
        found = a.gather(index)
        assert np.array_equal(found[:, 1], index * 64.0 + 1)
        assert a.stats()["read_bytes"] <= 1.1 * a.nbytes


def test_texts_that_are_short_are_rows_of_the_same_length(small):
    with small.zeros((20000,), "S9") as a:
        a[list(range(100))] = b"x"
        assert a.gather(range(90, 110)).tolist() == [b"x"] * 10 + [b""] * 10


def test_records_with_arrays_in_them_are_assigned_by_a_mask(small):
    dtype = np.dtype([("p", "u2"), ("v", "f4", (3,))])
    records = [(i, [i, i, i]) for i in range(1000)]
    with small.zeros(2000, dtype) as a:
        a[np.arange(2000) % 2 == 1] = records
        assert a["p"].tolist() == [i for n in range(1000) for i in (0, n)]


@pytest.fixture
def far(tmp_path, small):
    """320 MiB of zeros, forty times the budget."""
    with open(tmp_path / "far.dat", "wb") as file:
        file.truncate(10_000 * 4096 * 8)
    with small.open(tmp_path / "far.dat", "r+", shape=(10_000, 4096), dtype="f8",
                    advise="random") as a:
        yield a


@pytest.mark.parametrize("key, pages", [
    ((slice(None, None, 256), 0), 40), ((slice(9000, None, -9), 7), 1001),
    ((slice(None), 3), 10_000),  # more than a block
    ((slice(None, None, 100), slice(None, None, 1024)), 400),
    ((slice(5, None, 500), slice(100, 200)), 20),
    ((slice(None, None, 3), slice(0, 512)), 3334)])
def test_what_lies_between_far_elements_is_neither_read_nor_changed(far, key, pages):
    before = far.stats()["read_bytes"]
    far[key] = 5
    assert far.stats()["read_bytes"] - before <= 1.1 * 4096 * pages
    before = far.stats()["read_bytes"]
    assert (far.read(key) == 5).all()
    assert far.stats()["read_bytes"] - before <= 1.1 * 4096 * pages
    assert far.sum() == 5 * far.read(key).size


@pytest.mark.parametrize("order", ["C", "F"])
def test_far_elements_are_assigned_as_numpy_does(order, small):
    rng = np.random.default_rng(7)
    with small.zeros((40, 50, 3000), "i4", order) as a:  # three times the budget
        plain = np.zeros(a.shape, a.dtype, order)
        for _ in range(20):
            steps = [int(rng.choice([1, 1, 2, 7, 25, -1, -3])) for _ in a.shape]
            key = tuple(slice(None, None, step) for step in steps)
            key = tuple(int(rng.integers(n)) if rng.random() < 0.3 else k
                        for n, k in zip(a.shape, key))
            value = rng.integers(0, 1000, plain[key].shape)
            a[key] = plain[key] = value
            assert np.array_equal(a.read(key), value)
        assert np.array_equal(a, plain)
