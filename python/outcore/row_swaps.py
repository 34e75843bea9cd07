"""RowSwaps: ``a[i], a[j] = a[j], a[i]`` exchanges two rows, though rows are views.

The statement takes views of both rows, writes row i, and writes row j from the view of row i, which
shows what was row j by then: one of the two would be lost. random.shuffle and numpy's rng.shuffle
do this to every array that is no ndarray. So a row is kept when it is overwritten by another while
a view of it has just been taken, and the assignment that follows gets what was kept.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np

from . import _core
from .location import locate, scratch_url
from .pager import Pager

_KEPT_BYTES_MAX = 256 << 20
_KEPT_SHARE = 8  # in memory at most this part of the budget, as that is outside of it
_COMPARED_BYTES = 1 << 20

_Plain = np.ndarray[Any, Any]


class _Seen:
    """A row that was taken, without keeping it alive."""

    def __init__(self, key: int, row: Any) -> None:
        self.key = key
        self.row = weakref.ref(row) if isinstance(row, np.ndarray) else lambda: None

    def is_row(self, view: _Plain, value: Any) -> bool:
        """Records know no weak references, but where they lie: one that is a row lies there, and
        one of its own, as numpy.zeros(1, dtype)[0], elsewhere."""
        if isinstance(value, np.ndarray):
            return self.row() is value
        row = view[self.key:][:1]
        return row.ndim == 1 and _address_of(row) == _address_of(value)


class _Overwritten:
    """What a row was, for as long as the view of it lives: without it no exchange can follow."""

    def __init__(self, seen: _Seen, by: int, row: _Plain, pager: Pager) -> None:
        self.seen, self.by = seen, by
        bytes_max = min(_KEPT_BYTES_MAX, pager.core.budget_bytes // _KEPT_SHARE)
        copy = row.copy() if row.nbytes <= bytes_max else _copy_on_scratch(row, pager)
        self.kept = kept = [copy[0]]
        view = seen.row()
        self._end = None if view is None else weakref.ref(view, lambda _: kept.clear())


class RowSwaps(threading.local):
    """The last two rows that this thread took, and the row that it has just overwritten.

    A row that would take more than a share of the budget is kept on scratch space. If there is
    none, the first assignment is an OSError, and nothing has changed.
    """

    def __init__(self, pager: Pager) -> None:
        self._pager = pager
        self._seen: tuple[_Seen | None, _Seen | None] = None, None
        self._written: _Overwritten | None = None

    def take(self, key: Any, row: Any) -> None:
        """``row`` is what ``a[key]`` gives now."""
        if isinstance(row, (np.ndarray, np.void)):
            self._seen = self._seen[1], _Seen(int(key), row)
            self._written = None

    def source_of(self, view: _Plain, key: Any, value: Any) -> Any:
        """What ``view[key] = value`` is to be assigned: the value, or what it was."""
        written, self._written = self._written, None
        first, second = self._seen
        if first is None or second is None or type(key) is not int and \
                not isinstance(key, np.integer) or not isinstance(value, (np.ndarray, np.void)):
            return value
        if written is not None and written.by == key and written.seen.is_row(view, value):
            return _was(written, view, value)
        other = second if first.is_row(view, value) else first if second.is_row(view, value) \
            else None
        source = first if other is second else second
        # An array's row that nobody holds any more is not exchanged.
        if other is not None and other.key == key and source.key != key and \
                (other.row() is not None or isinstance(value, np.void)):
            self._written = _Overwritten(other, source.key, view[key:][:1], self._pager)
        return value


def _was(written: _Overwritten, view: _Plain, value: Any) -> Any:
    """What the row was, from which ``value`` is a view; the value if it was changed since, and
    means what it says."""
    to, by = written.seen.key, written.by
    row = view[to:][:1]
    if not _is_same(row, view[by:][:1]):
        return value
    return written.kept[0]


def _copy_on_scratch(row: _Plain, pager: Pager) -> _Plain:
    """Gone with the last view of it."""
    region = pager.map(locate(scratch_url(None)), {
        "access": "read-write", "size_bytes": row.nbytes, "may_create": True})
    buffer: Any = _core.Lease(region)
    copy: _Plain = np.ndarray(row.shape, row.dtype, buffer)
    copy[...] = row
    return copy


def _is_same(row: _Plain, other: _Plain) -> bool:
    """Whether they have the same bytes."""
    if row.nbytes <= _COMPARED_BYTES or row.size < 2:
        return row.tobytes() == other.tobytes()
    axis = int(np.argmax(row.shape))
    row, other = np.moveaxis(row, axis, 0), np.moveaxis(other, axis, 0)
    half = len(row) // 2
    return _is_same(row[:half], other[:half]) and _is_same(row[half:], other[half:])


def _address_of(value: Any) -> int:
    return int(value.__array_interface__["data"][0])
