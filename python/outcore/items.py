"""Items: elements are read as copies or views, and assignments write through.

What is brought in here fails as an OSError; see walk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import assignment, walk
from .elements import Elements
from .row_swaps import RowSwaps
from .sizes import parse_bytes
from .view import View

_FEW_ROWS = 8  # are brought in one by one

_Plain = np.ndarray[Any, Any]


def _plain(elements: Elements) -> _Plain:
    return elements.view().view(np.ndarray)


def _basic_part(view: _Plain, key: Any) -> _Plain | None:
    """The part that a key without arrays names, as an array; None for other keys."""
    keys = key if isinstance(key, tuple) else (key,)
    if all(type(k) in (int, slice, type(None), type(...)) or isinstance(k, np.integer)
           for k in keys):
        return view[(*keys, ...) if ... not in keys else keys]
    return None


def _row_index(elements: Elements, key: Any) -> _Plain | None:
    """``key`` as numbers of rows, if it takes whole rows; else None."""
    index = np.asarray(key)
    shape = elements.shape
    if len(shape) == 0 or 0 in shape or index.ndim == 0:
        return None
    if index.dtype == np.bool_ and index.shape == shape[:1]:
        index = np.flatnonzero(index)
    if index.dtype.kind not in "iu" or index.size == 0:
        return None
    index = index.astype(np.int64, copy=False)
    few = index.ravel().tolist() if index.size < _FEW_ROWS else None
    low, high = (min(few), max(few)) if few is not None else (int(index.min()), int(index.max()))
    count = shape[0]
    if low < -count or high >= count:
        wrong = low if low < -count else high
        raise IndexError(f"index {wrong} is out of bounds for axis 0 with size {count}")
    return np.where(index < 0, index + count, index) if low < 0 else index


def _number_of(key: Any) -> Any:
    """NumPy takes an array without axes as the number that it has."""
    is_number = isinstance(key, np.ndarray) and key.ndim == 0 and key.dtype.kind in "iu"
    return int(key) if is_number else key


# -- reading --


def _gather_rows(elements: Elements, index: _Plain) -> _Plain:
    view, region = _plain(elements), elements.region
    row_bytes = view.nbytes // len(view)
    if elements.is_by_columns:
        return walk.gather_columns(view, region, index, elements.block_bytes)
    if index.size >= _FEW_ROWS or index.size * row_bytes > elements.block_bytes:
        return walk.gather(view, region, index, elements.block_bytes)
    for row in index.ravel().tolist():
        region.ensure(elements.lead + row * row_bytes, row_bytes)
    return view[index]


def get(elements: Elements, key: Any) -> Any:
    """``array[key]``."""
    number = _number_of(key)
    if number is not key and len(elements.shape) > 1:
        return read(elements, number)  # NumPy copies by an array, also by one without axes
    key = number
    offset = elements.offset_of(key)
    if offset is not None and elements.shape:
        item_bytes = elements.dtype.itemsize
        if elements.dtype.kind != "V":
            return np.frombuffer(elements.region.read(offset, item_bytes), elements.dtype)[0]
        elements.region.ensure(offset, item_bytes)
    elif isinstance(key, (list, np.ndarray)):
        index = _row_index(elements, key)
        if index is not None:
            return _gather_rows(elements, index)
    return elements.view()[key]


def gather(elements: Elements, rows: Any) -> _Plain:
    """A copy of these rows."""
    index = np.asarray(rows)
    if index.dtype != np.bool_ and index.dtype.kind not in "iu":
        raise IndexError(f"rows are numbers or a mask, not {index.dtype}")
    found = _row_index(elements, index)
    if found is None:
        return np.array(elements.view()[index])
    return _gather_rows(elements, found)


def read(elements: Elements, key: Any) -> _Plain:
    """A copy of ``array[key]`` in ordinary memory."""
    key = tuple(map(_number_of, key)) if isinstance(key, tuple) else _number_of(key)
    view = _plain(elements)
    is_of_fields = isinstance(key, str) or isinstance(key, list) and bool(key) and \
        all(isinstance(k, str) for k in key)
    part = view[key] if is_of_fields else _basic_part(view, key)
    if part is None:
        found = np.asarray(get(elements, key))
        return found.copy() if np.may_share_memory(found, view) else found
    out = np.empty(part.shape, part.dtype, elements.order)  # type: ignore[call-overload]
    if part.ndim == 0:
        elements.region.ensure(*walk.bounds_in(elements.region, part))
        out[...] = part
        return out
    if walk.is_far_apart(part, elements.region, elements.block_bytes):
        walk.get_runs(part, elements.region, out, elements.block_bytes)
        return out
    axis = 0 if elements.order == "C" else part.ndim - 1
    at, into = 0, np.moveaxis(out, axis, 0)
    for rows in walk.rows_of(np.moveaxis(part, axis, 0), elements.region, elements.block_bytes):
        into[at:at + len(rows)] = rows
        at += len(rows)
    return out


def chunks(elements: Elements, chunk: int | str | None, axis: int | None) -> Iterator[View]:
    """Consecutive parts as views, each brought in before it comes."""
    axis = elements.outer_axis if axis is None else axis
    view: Any = np.moveaxis(elements.view(), axis, 0)
    block_bytes = elements.block_bytes
    if isinstance(chunk, str):
        block_bytes = parse_bytes(chunk)
    elif chunk is not None:
        if chunk < 1:
            raise ValueError(f"a chunk of {chunk} rows: write 1 or more, or text as '8MiB'")
        block_bytes = max(1, chunk * max(view.nbytes // max(len(view), 1), 1))
    part: Any = None
    try:
        for part in walk.rows_of(view, elements.region, block_bytes):
            yield np.moveaxis(part, 0, axis)
    except OSError as error:  # see plain_errors
        del view, part
        raise error.with_traceback(None)  # noqa: B904 (the same error)


def save(elements: Elements, file: Any) -> None:
    """Writes them to a file, or to the path of one, by copies of parts."""
    if not hasattr(file, "write"):
        with open(os.fspath(file), "wb") as opened:  # not a descriptor, as NumPy says
            save(elements, opened)
        return
    # NumPy writes the first axis outermost, whatever the order.
    for part in chunks(elements, None, 0) if elements.shape else [elements.view()]:
        # As bytes, since a copy of records has anything in the gaps between their fields.
        is_record = part.dtype.kind == "V"
        raw = part.view(np.ndarray).view(f"V{part.dtype.itemsize}") if is_record else part
        np.array(raw, order="C").tofile(file)


# -- writing --


def put(elements: Elements, swaps: RowSwaps, key: Any, value: Any) -> None:
    """``array[key] = value``."""
    key = _number_of(key)
    view = _plain(elements)
    value = swaps.source_of(view, key, value)
    part = None
    if not isinstance(key, (list, np.ndarray)):
        part = _basic_part(view, key)
    elif view.flags.writeable and _assign_rows(elements, view, key, value):
        return
    if part is None or not view.flags.writeable or part.dtype != view.dtype:
        view[key] = value
    elif part.ndim == 0 or part.nbytes <= elements.block_bytes and \
            not walk.is_far_apart(part, elements.region, elements.block_bytes):
        elements.region.ensure(*walk.bounds_in(elements.region, part))
        view[key] = value
    else:
        _assign(elements, part, value)


def _assign_rows(elements: Elements, view: _Plain, key: Any, value: Any) -> bool:
    """False if it is left to NumPy, who says what is wrong or copies what overlaps."""
    try:
        index = _row_index(elements, key)
    except IndexError:
        return False
    if index is None or index.ndim != 1 or assignment.may_overlap(view, value):
        return False
    # NumPy takes deeper values where the array has one axis; by a mask none at all.
    is_line, is_mask = view.ndim == 1, np.asarray(key).dtype == np.bool_
    source = assignment.source_of(value, (len(index), *view.shape[1:]), view.dtype,
                                  takes_deep=is_line and not is_mask,
                                  is_flat=is_line and is_mask)
    if source is None:
        return False
    scatter = walk.scatter_columns if elements.is_by_columns else walk.scatter
    scatter(view, elements.region, index, source, elements.block_bytes)
    return True


def _assign(elements: Elements, part: _Plain, value: Any) -> None:
    source = None
    if not assignment.may_overlap(part, value):
        source = assignment.source_of(value, part.shape, part.dtype)
    if source is None:
        part[...] = value  # NumPy says what is wrong, or copies what overlaps
        return
    if walk.is_far_apart(part, elements.region, elements.block_bytes):
        walk.put_runs(part, elements.region, source, elements.block_bytes)
        return
    axis = 0 if elements.order == "C" else part.ndim - 1
    part, source = np.moveaxis(part, axis, 0), np.moveaxis(source, axis, 0)
    at = 0
    for rows in walk.rows_of(part, elements.region, elements.block_bytes):
        rows[...] = source[at:at + len(rows)]
        at += len(rows)
