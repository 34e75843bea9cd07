"""RowSwaps: ``a[i], a[j] = a[j], a[i]`` exchanges two rows, though rows are views.

The statement takes views of both rows, writes row i, and writes row j from the view of row i, which
shows what was row j by then: one of the two would be lost. random.shuffle and numpy's rng.shuffle
do this to every array that is no ndarray. So a row is kept when it is overwritten by another while
a view of it has just been taken, and the assignment that follows gets what was kept.
"""

from __future__ import annotations

import errno
import threading
import weakref
from typing import Any

import numpy as np

_KEPT_BYTES_MAX = 256 << 20


class _Seen:
    """A row that was taken, without keeping it alive. Records of an array know no weak references.
    """

    def __init__(self, key: int, row: Any) -> None:
        self.key = key
        self._number = id(row)
        self._row = weakref.ref(row) if isinstance(row, np.ndarray) else None

    def is_row(self, value: Any) -> bool:
        return self._row() is value if self._row is not None else self._number == id(value)


class RowSwaps(threading.local):
    """The last two rows that this thread took, and the row that it has just overwritten."""

    def __init__(self) -> None:
        self._seen: tuple[_Seen | None, _Seen | None] = None, None
        self._written: tuple[_Seen, int, Any] | None = None  # which row, by which, what it was

    def take(self, key: Any, row: Any) -> None:
        """``row`` is what ``a[key]`` gives now."""
        if isinstance(row, (np.ndarray, np.void)):
            self._seen = self._seen[1], _Seen(int(key), row)
            self._written = None

    def source_of(self, view: np.ndarray[Any, Any], key: Any, value: Any) -> Any:
        """What ``view[key] = value`` is to be assigned: the value, or what it was."""
        written, self._written = self._written, None
        first, second = self._seen
        if first is None or second is None or type(key) is not int and \
                not isinstance(key, np.integer) or not isinstance(value, (np.ndarray, np.void)):
            return value
        if written is not None and written[1] == key and written[0].is_row(value):
            to, by, kept = written
            # Else it was changed since, and means what it says.
            is_same = view[to.key:][:1].tobytes() == view[by:][:1].tobytes()
            return kept if is_same else value
        other = second if first.is_row(value) else first if second.is_row(value) else None
        source = first if other is second else second
        if other is not None and other.key == key and source.key != key:
            row = view[key:][:1]
            if row.nbytes > _KEPT_BYTES_MAX:
                raise OSError(errno.ENOMEM, f"rows {key} and {source.key} are exchanged through "
                              f"views, which takes a copy of {row.nbytes} bytes: exchange them in "
                              "parts, with a temporary array")
            self._written = other, source.key, row.copy()[0]
        return value
