"""Rows that are exchanged in place: views of them are alive meanwhile, and none may be lost."""

import random
import tracemalloc
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


def test_records_that_are_not_exchanged_are_assigned(small):
    dtype = np.dtype([("x", "i4"), ("y", "i4")])
    for seed in range(300):
        choose = random.Random(seed)
        steps = [(choose.randrange(3), choose.randrange(5), choose.randrange(3))
                 for _ in range(12)]
        found = []
        for t in (small.zeros(5, dtype), np.zeros(5, dtype)):
            for what, row, value in steps:  # temporaries of one step have the next one's addresses
                if what == 0:
                    t[row]["x"]
                elif what == 1:
                    t[row] = np.array([(value, row)], dtype)[0]
                else:
                    t[row] = np.zeros(1, dtype)[0]
            found.append(np.asarray(t))
        assert np.array_equal(*found), steps


def test_a_long_row_is_assigned_to_another_that_is_held(small):
    with small.zeros((3, 1 << 19)) as a:  # rows of 4 MiB, half of the budget
        first, second = a[0], a[1]
        second[:] = 7
        a[0] = second
        assert first[-1] == 7
        first[:10] = 8
        a[1] = first  # it was changed since: no exchange
        assert a[1, :11].tolist() == [8] * 10 + [7]
        del first, second


def test_rows_that_are_too_long_to_be_kept_in_memory_are_exchanged(small):
    with small.zeros((3, 1 << 19)) as a:
        a[0] = np.arange(1 << 19)
        a[1] = 7
        tracemalloc.start()
        try:
            a[0], a[1] = a[1], a[0]
            assert tracemalloc.get_traced_memory()[1] < 3 << 20  # rows of 4 MiB
        finally:
            tracemalloc.stop()
        assert (a[0] == 7).all() and (a[1] == np.arange(1 << 19)).all()


def test_a_row_for_which_there_is_no_scratch_space_is_not_overwritten(small, monkeypatch):
    def none(location, options, budget=None):
        raise OSError(28, "no space")
    with small.zeros((3, 1 << 19)) as a:
        a[1] = 7
        monkeypatch.setattr(type(a._elements.pager), "map", none)
        with pytest.raises(OSError, match="no space"):
            a[0], a[1] = a[1], a[0]
        assert a[0, 0] == 0 and a[1, 0] == 7


def test_what_is_kept_of_a_row_is_gone_with_the_view_of_it(small):
    with small.zeros((3, 1 << 16)) as a:  # rows of 512 KiB
        tracemalloc.start()
        try:
            first, second = a[0], a[1]
            a[0] = second
            kept = tracemalloc.get_traced_memory()[0]
            del first
            left = tracemalloc.get_traced_memory()[0]
            third = a[0]
            del third
            third = a[1]
            a[0] = third  # nobody holds row 0
            again = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        assert kept > 1 << 19 and left < 1 << 18 and again < 1 << 18
        del second, third
