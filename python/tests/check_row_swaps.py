"""Rows that are exchanged in place: views of them are alive meanwhile, and none may be lost."""

import random
import warnings

import numpy as np
import pytest

import outcore

_RECORD = [("i", "i8"), ("x", "f4")]


def _shuffled_by(name, a):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # NumPy doubts all that is no ndarray
        if name == "random":
            random.Random(3).shuffle(a)
        elif name == "Generator":
            np.random.default_rng(3).shuffle(a)
        else:
            np.random.RandomState(3).shuffle(a)


@pytest.mark.parametrize("name", ["random", "Generator", "RandomState"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_shuffling_keeps_every_row(name, order, small):
    rows = np.arange(3000.0).reshape(1000, 3)
    with small.zeros(rows.shape, "f8", order) as a:
        a[...] = rows
        _shuffled_by(name, a)
        found = a.read()
    assert not np.array_equal(found, rows)
    assert np.array_equal(found[found[:, 0].argsort()], rows)


@pytest.mark.parametrize("name", ["random", "Generator", "RandomState"])
def test_shuffling_keeps_every_record(name, small):
    with small.zeros(1000, _RECORD) as a:
        records = np.zeros(1000, _RECORD)
        records["i"] = range(1000)
        a[...] = records
        _shuffled_by(name, a)
        found = a.read()
    assert not np.array_equal(found, records) and np.array_equal(np.sort(found), records)


def test_numpys_shuffle_has_the_order_that_an_ndarray_gets(small):
    rows = np.arange(300.0).reshape(100, 3)
    with small.zeros(rows.shape) as a:
        a[...] = rows
        _shuffled_by("Generator", a)
        np.random.default_rng(3).shuffle(rows)
        assert np.array_equal(a, rows)


def test_rows_are_exchanged_by_a_statement(small):
    with small.zeros((10, 4)) as a:
        a[...] = np.arange(10.0)[:, None]
        a[2], a[-1] = a[-1], a[2]
        assert a[:, 0].tolist() == [0, 1, 9, 3, 4, 5, 6, 7, 8, 2]


def test_what_is_no_exchange_is_assigned_as_it_stands(small):
    with small.zeros((4, 4)) as a:
        a[...] = np.arange(4.0)[:, None]
        a[0] = a[1]
        a[1] = a[0]  # a new view, of what is there now
        assert a[:, 0].tolist() == [1, 1, 2, 3]
        first, second = a[2], a[3]
        a[2] = second
        first += 10  # row 2 is 13 now
        a[3] = first
        assert a[:, 0].tolist() == [1, 1, 13, 13]
        del first, second


def test_a_row_that_was_taken_does_not_keep_the_array_open():
    a = outcore.zeros((4, 4))
    a[0], a[1] = a[1], a[0]
    a.close()
    assert a.closed
