"""Walk: work on more than fits, block by block, each brought in before it is touched.

What is brought in by a call fails as an OSError; what is touched fails as a signal. Between blocks
Python hears Ctrl-C.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from . import _core

BLOCK_BYTES_MAX = 8 << 20
BRING_THREADS = 8  # transfers in flight of a scattered access
_GAP_PAGES_MAX = 4  # pages this near are brought in as one range
_PART_ELEMENTS_MAX = 1 << 18  # of which the places are kept at a time
_SORTED_ROWS_MAX = 1 << 20  # sorting them takes some 50 MiB

byte_bounds = getattr(np.lib, "array_utils", np).byte_bounds


def bounds_in(region: _core.Region, array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Where the array's bytes lie in the region: from, and how many."""
    if array.size == 0:
        return 0, 0
    low, high = byte_bounds(array)
    return low - region.address, high - low


def slices(begin: int, size: int, step: int = BLOCK_BYTES_MAX) -> Iterator[tuple[int, int]]:
    """Pieces of a range that are short enough to hear Ctrl-C between them."""
    while size > 0:
        piece = min(step, size)
        yield begin, piece
        begin, size = begin + piece, size - piece


def page_starts(region: _core.Region, begins: np.ndarray[Any, Any],
                size: int) -> np.ndarray[Any, Any]:
    """An offset in each page of the region that [begin, begin + size) of any begin touches."""
    page = region.page_bytes
    first = (begins + region.start) // page
    count = int(((begins + (region.start + size - 1)) // page - first).max(initial=0)) + 1
    last = (begins + (region.start + size - 1)) // page
    pages = np.minimum(first[:, None] + np.arange(count), last[:, None]) if count > 1 else first
    if begins.size == 0:
        return np.empty(0, np.uint64)
    pages = np.sort(pages, axis=None, kind="stable")  # quick where they come in order, as here
    starts = pages[np.r_[True, pages[1:] != pages[:-1]]] * page
    return np.maximum(starts - region.start, 0).astype(np.uint64)


def bring_rows(region: _core.Region, begins: np.ndarray[Any, Any], size: int) -> None:
    """Brings in scattered rows of ``size`` bytes that begin there."""
    region.bring(page_starts(region, begins, size), BRING_THREADS)


def bring_range(region: _core.Region, begin: int, size: int) -> None:
    for at, piece in slices(begin, size):
        region.ensure(at, piece)


def rows_of(array: np.ndarray[Any, Any], region: _core.Region,
            block_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
    """Consecutive parts of the array along its first axis, each brought in as it comes."""
    if array.ndim == 0 or array.size == 0:
        bring_range(region, *bounds_in(region, array))
        yield array
        return
    _, size = bounds_in(region, array)
    step = max(1, int(len(array) * block_bytes / max(size, 1)))
    for i in range(0, len(array), step):
        part = array[i:i + step]
        begin, size = bounds_in(region, part)
        # Rows that lie all over the store are not brought in: what came first would be gone again.
        if not _is_sparse(part, size, block_bytes):
            if i + step < len(array):  # the next one, while this one is worked on
                region.prefetch(*bounds_in(region, array[i + step:i + 2 * step]))
            bring_range(region, begin, size)
        yield part


# -- elements that lie far apart --


def _is_sparse(array: np.ndarray[Any, Any], size: int, block_bytes: int) -> bool:
    """Whether most of the ``size`` bytes from its first to its last element are not the array's."""
    return size > 2 * max(block_bytes, array.nbytes)


def _axes_of_runs(array: np.ndarray[Any, Any], page_bytes: int,
                  block_bytes: int) -> tuple[list[int], list[int], int]:
    """The axes that lead from run to run, those within a run, and the bytes that a run spans: it
    has elements in each of its pages, and is no longer than a block."""
    by_stride = sorted(range(array.ndim), key=lambda axis: abs(array.strides[axis]))
    size, within = array.itemsize, 0
    for axis in by_stride:
        stride = abs(array.strides[axis])
        span = size + (array.shape[axis] - 1) * stride
        if span > block_bytes or stride > page_bytes and array.shape[axis] > 1:
            break
        size, within = span, within + 1
    return by_stride[:within - 1:-1] if within else by_stride[::-1], by_stride[:within], size


def is_far_apart(array: np.ndarray[Any, Any], region: _core.Region, block_bytes: int) -> bool:
    """Whether ``put_runs`` and ``get_runs`` suit the array: pages lie between its elements."""
    if array.size == 0 or not _is_sparse(array, bounds_in(region, array)[1], block_bytes):
        return False
    between, _, _ = _axes_of_runs(array, region.page_bytes, block_bytes)
    strides = [abs(array.strides[axis]) for axis in between]
    return array.nbytes <= block_bytes or min(strides, default=0) > region.page_bytes


def _runs(array: np.ndarray[Any, Any], region: _core.Region,
          block_bytes: int) -> Iterator[tuple[list[int], tuple[Any, ...]]]:
    """An order of axes, and indices along the first of them: together they name all elements. Each
    part is brought in as it comes, and nothing that lies between its runs."""
    between, within, size = _axes_of_runs(array, region.page_bytes, block_bytes)
    shape = tuple(array.shape[axis] for axis in between)
    begin = array.__array_interface__["data"][0] - region.address
    begin += sum(min(0, array.strides[axis] * (array.shape[axis] - 1)) for axis in within)
    pages = (size - 2) // region.page_bytes + 2 if size > 1 else 1
    step = max(1, block_bytes // (pages * region.page_bytes))
    count = math.prod(shape)
    for at in range(0, count, step):
        index = np.unravel_index(np.arange(at, min(at + step, count)), shape) if shape else ()
        begins = np.array([begin], np.int64)
        for axis, numbers in zip(between, index):
            begins = begins + numbers * array.strides[axis]
        bring_rows(region, begins, size)
        yield [*between, *within], index


def put_runs(array: np.ndarray[Any, Any], region: _core.Region, value: np.ndarray[Any, Any],
             block_bytes: int) -> None:
    """``array[...] = value``, of the same shape, where the array's elements lie far apart."""
    for axes, index in _runs(array, region, block_bytes):
        array.transpose(axes)[index] = value.transpose(axes)[index]


def get_runs(array: np.ndarray[Any, Any], region: _core.Region, into: np.ndarray[Any, Any],
             block_bytes: int) -> None:
    """``into[...] = array``, likewise."""
    for axes, index in _runs(array, region, block_bytes):
        into.transpose(axes)[index] = array.transpose(axes)[index]


# -- scattered rows --


def gather(root: np.ndarray[Any, Any], region: _core.Region, index: np.ndarray[Any, Any],
           block_bytes: int) -> np.ndarray[Any, Any]:
    """``root[index]``; each page is brought in once, whatever the order of the index."""
    out = np.empty(index.shape + root.shape[1:], root.dtype)
    flat, rows = index.ravel(), out.reshape((index.size, *root.shape[1:]))
    for part, begins in _row_batches(root, region, flat, block_bytes):
        bring_rows(region, begins, _row_bytes(root))
        rows[part] = root[flat[part]]
    return out


def scatter(root: np.ndarray[Any, Any], region: _core.Region, index: np.ndarray[Any, Any],
            value: np.ndarray[Any, Any], block_bytes: int) -> None:
    """``root[index] = value``, likewise; of a row that is named twice the last value stays.

    The index has one dimension; the value has the shape of ``root[index]``.
    """
    for part, begins in _row_batches(root, region, index, block_bytes):
        bring_rows(region, begins, _row_bytes(root))
        root[index[part]] = value[part]


def _row_bytes(root: np.ndarray[Any, Any]) -> int:
    return root.nbytes // len(root)  # root[0] of texts is as long as the text


def _row_batches(root: np.ndarray[Any, Any], region: _core.Region, flat: np.ndarray[Any, Any],
                 block_bytes: int) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Positions in ``flat``, in the order of their rows, and where those rows begin.

    The pages of a batch are about ``block_bytes``. Up to ``_SORTED_ROWS_MAX`` rows are sorted at a
    time, which bounds the memory that sorting takes; of these each page is in one batch, or in two
    that follow each other.
    """
    row_bytes, page = _row_bytes(root), region.page_bytes
    offset = root.__array_interface__["data"][0] - region.address
    pages_max = max(1, block_bytes // page)
    rows_max = max(1, block_bytes // row_bytes)
    for start in range(0, len(flat), _SORTED_ROWS_MAX):
        order = np.argsort(flat[start:start + _SORTED_ROWS_MAX], kind="stable") + start
        begins = flat[order].astype(np.int64) * row_bytes + offset
        first = (begins + region.start) // page
        last = (begins + (region.start + row_bytes - 1)) // page
        first[1:] = np.maximum(first[1:], last[:-1] + 1)
        pages = np.cumsum(last - first + 1)  # how many different ones up to this row
        at = 0
        while at < len(order):
            before = int(pages[at - 1]) if at else 0
            end = int(np.searchsorted(pages, before + pages_max, side="right"))
            end = min(max(end, at + 1), at + rows_max)
            yield order[at:end], begins[at:end]
            at = end


# -- rows of arrays in order F, whose elements lie in as many places as there are columns --


class ColumnsPart(NamedTuple):
    """Some rows of some columns, and where their bytes lie."""

    rows: slice  # of the index
    columns: slice
    ranges: list[tuple[int, int]]  # from, and how many: where rows are dense
    begins: np.ndarray[Any, Any]  # of elements: where they lie scattered

    def bring(self, region: _core.Region, item_bytes: int) -> None:
        for begin, size in self.ranges:
            bring_range(region, begin, size)
        if self.begins.size:
            bring_rows(region, self.begins, item_bytes)

    def places(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """Where its elements lie in an array of rows with axes of that shape behind, which are
        those of the region's array in the opposite order: columns count as in order F there."""
        columns = np.arange(self.columns.start, self.columns.stop)
        return (self.rows, *np.unravel_index(columns, shape))


def columns_of(root: np.ndarray[Any, Any], region: _core.Region, index: np.ndarray[Any, Any],
               block_bytes: int) -> Iterator[ColumnsPart]:
    """Parts that together name all elements of these rows once, each of about ``block_bytes`` of
    pages."""
    page, item = region.page_bytes, root.itemsize
    column_bytes, columns = len(root) * item, root.size // len(root)
    offset = root.__array_interface__["data"][0] - region.address
    item_pages = (item + page - 2) // page + 1
    pages_max = max(1, block_bytes // (page * item_pages))  # or elements
    elements_max = max(1, min(_PART_ELEMENTS_MAX, block_bytes // item))
    at = 0
    while at < len(index):
        count = min(len(index) - at, elements_max)
        low, high = int(index[at:at + count].min()), int(index[at:at + count].max())
        while count > pages_max and (high - low) * item // page + 2 > pages_max:
            count = max(count // 2, pages_max)
            low, high = int(index[at:at + count].min()), int(index[at:at + count].max())
        rows = np.sort(index[at:at + count].astype(np.int64, copy=False)) * item + offset
        breaks = np.flatnonzero(np.diff(rows) > page) + 1
        runs = list(zip(rows[np.r_[0, breaks]].tolist(), rows[np.r_[breaks - 1, -1]].tolist()))
        is_short = column_bytes <= page
        is_dense = sum(last - first for first, last in runs) >= (len(runs) - 1) * page
        pages = min(count, (high - low) * item // page + 2)
        width = max(1, min(pages_max // pages, elements_max // count))
        for column in range(0, columns, width):
            end = min(column + width, columns)
            starts = range(column * column_bytes, end * column_bytes, column_bytes)
            ranges: list[tuple[int, int]] = []
            begins = rows[:0]
            if is_short:  # what lies between is hardly more
                first, last = starts[0] + runs[0][0], starts[-1] + runs[-1][1]
                ranges = [(first, last - first + item)]
            elif is_dense:
                ranges = [(start + first, last - first + item) for start in starts
                          for first, last in runs]
            else:
                begins = (np.array(starts)[:, None] + rows[None, :]).ravel()
            yield ColumnsPart(slice(at, at + count), slice(column, end), ranges, begins)
        at += count


def gather_columns(root: np.ndarray[Any, Any], region: _core.Region, index: np.ndarray[Any, Any],
                   block_bytes: int) -> np.ndarray[Any, Any]:
    """``root[index]``, of an array in order F."""
    out = np.empty(index.shape + root.shape[1:], root.dtype)
    flat, table = index.ravel(), root.reshape((len(root), -1), order="F")
    into = out.reshape((index.size, *root.shape[1:])).transpose(0, *range(root.ndim - 1, 0, -1))
    for part in columns_of(root, region, flat, block_bytes):
        part.bring(region, root.itemsize)
        into[part.places(into.shape[1:])] = table[flat[part.rows], part.columns]
    return out


def scatter_columns(root: np.ndarray[Any, Any], region: _core.Region, index: np.ndarray[Any, Any],
                    value: np.ndarray[Any, Any], block_bytes: int) -> None:
    """``root[index] = value``, likewise; the index has one dimension."""
    table = root.reshape((len(root), -1), order="F")
    source = value.transpose(0, *range(root.ndim - 1, 0, -1))
    for part in columns_of(root, region, index, block_bytes):
        part.bring(region, root.itemsize)
        table[index[part.rows], part.columns] = source[part.places(source.shape[1:])]


# -- sums --


def _halves(count: int, leaf: int) -> Iterator[int]:
    """Lengths of the parts that NumPy's pairwise sum would make, down to ``leaf``."""
    if count <= leaf:
        yield count
        return
    half = count // 2
    half -= half % 8
    yield from _halves(half, leaf)
    yield from _halves(count - half, leaf)


def _join(count: int, leaf: int, sums: Iterator[Any]) -> Any:
    if count <= leaf:
        return next(sums)
    half = count // 2
    half -= half % 8
    first = _join(half, leaf, sums)
    return first + _join(count - half, leaf, sums)


def _parts(flat: np.ndarray[Any, Any], region: _core.Region, lengths: list[int],
           is_scattered: bool) -> Iterator[np.ndarray[Any, Any]]:
    at = 0
    for i, length in enumerate(lengths):
        part = flat[at:at + length]
        at += length
        begin, size = bounds_in(region, part)
        if is_scattered:
            begins = np.arange(length, dtype=np.int64) * abs(flat.strides[0]) + begin
            bring_rows(region, begins, flat.itemsize)
        else:
            if i + 1 < len(lengths):
                region.prefetch(*bounds_in(region, flat[at:at + lengths[i + 1]]))
            bring_range(region, begin, size)
        yield part


def can_reduce(array: np.ndarray[Any, Any]) -> bool:
    """Whether ``reduce`` can: numbers that are one run in memory, or one axis."""
    if array.dtype.kind not in "biuf" or array.dtype.itemsize < 4 and array.dtype.kind == "f":
        return False
    return array.size > 0 and array.dtype.isnative and (
        array.ndim == 1 or array.flags.c_contiguous or array.flags.f_contiguous)


def reduce(ufunc: np.ufunc, array: np.ndarray[Any, Any], region: _core.Region,
           block_bytes: int) -> Any:
    """``ufunc.reduce`` of all elements; a sum of floats is rounded as NumPy rounds it.

    NumPy adds floats in pairs of halves (numpy/_core/src/umath/loops_utils.h.src); the parts here
    are such halves.
    """
    flat = array if array.ndim == 1 else array.reshape(-1, order="A")
    page, stride = region.page_bytes, abs(flat.strides[0])
    is_scattered = stride > _GAP_PAGES_MAX * page
    leaf = max(1024, block_bytes // (page if is_scattered else max(stride, 1)))
    lengths = list(_halves(len(flat), leaf))
    with np.errstate(over="ignore"):
        parts = [ufunc.reduce(part) for part in _parts(flat, region, lengths, is_scattered)]
        if ufunc is np.add:
            return _join(len(flat), leaf, iter(parts))
        return ufunc.reduce(np.array(parts))
