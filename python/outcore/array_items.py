"""ArrayItems: how an Array is indexed. Reading copies or views, and assignments write through."""

from __future__ import annotations

from collections.abc import Iterator
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from . import _core, assignment, walk
from .plain_errors import plain_errors
from .row_swaps import RowSwaps

if TYPE_CHECKING:
    from .runtime import Runtime
    from .view import View

Item = TypeVar("Item", bound=np.generic)  # of an array

_INDEX_COUNT_MIN = 8  # fewer scattered rows are left to faults


class ArrayItems(Generic[Item]):
    """Indexing. What it brings in itself fails as an OSError; see walk."""

    _runtime: Runtime
    _lead: int  # bytes of the region before the first element
    _strides: tuple[int, ...]
    _swaps: RowSwaps
    shape: tuple[int, ...]
    dtype: np.dtype[Item]
    order: str

    if TYPE_CHECKING:
        @property
        def _region(self) -> _core.Region: ...
        def _view(self) -> View: ...
        def __len__(self) -> int: ...

    def _item_offset(self, key: Any) -> int | None:
        """Where one element begins in the region; None if ``key`` does not name one by numbers."""
        keys = key if type(key) is tuple else (key,)
        if len(keys) != len(self.shape):
            return None
        offset = self._lead
        for k, length, stride in zip(keys, self.shape, self._strides):
            if type(k) is not int and not isinstance(k, np.integer):
                return None
            if not -length <= k < length:
                return None  # NumPy says why
            offset += int(k if k >= 0 else k + length) * stride
        return offset

    @overload
    def __getitem__(self, key: slice | EllipsisType | None | str | list[str]) -> View: ...
    @overload
    def __getitem__(self, key: list[int] | list[bool] | np.ndarray[Any, Any]
                    ) -> np.ndarray[Any, np.dtype[Item]]: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any] | tuple[Any, ...]) -> View | Item: ...

    @plain_errors
    def __getitem__(self, key: Any) -> Any:
        offset = self._item_offset(key)
        if offset is not None and self.shape:
            if self.dtype.kind != "V":
                item = self._region.read(offset, self.dtype.itemsize)
                return np.frombuffer(item, self.dtype)[0]
            self._region.ensure(offset, self.dtype.itemsize)
        elif isinstance(key, (list, np.ndarray)):
            index = self._row_index(key)
            if index is not None:
                return walk.gather(self._view().view(np.ndarray), self._region, index,
                                   self._block_bytes)
        found = self._view()[key]
        if type(key) is int or isinstance(key, np.integer):
            self._swaps.take(key, found)
        return found

    @plain_errors
    def __setitem__(self, key: Any, value: Any) -> None:
        view = self._view().view(np.ndarray)
        value = self._swaps.source_of(view, key, value)
        if isinstance(key, (list, np.ndarray)):
            if view.flags.writeable and self._assign_rows(view, key, value):
                return
        part = None if isinstance(key, (list, np.ndarray)) else self._basic_part(view, key)
        if part is None or not view.flags.writeable or part.dtype != view.dtype:
            view[key] = value
        elif part.nbytes <= self._block_bytes or part.ndim == 0:
            self._region.ensure(*walk.bounds_in(self._region, part))
            view[key] = value
        else:
            self._assign(part, value)

    @staticmethod
    def _basic_part(view: np.ndarray[Any, Any], key: Any) -> np.ndarray[Any, Any] | None:
        """The part that a key without arrays names, as an array; None for other keys."""
        keys = key if isinstance(key, tuple) else (key,)
        if all(type(k) in (int, slice, type(None), type(...)) or isinstance(k, np.integer)
               for k in keys):
            return view[(*keys, ...) if ... not in keys else keys]
        return None

    def _assign_rows(self, view: np.ndarray[Any, Any], key: Any, value: Any) -> bool:
        """False if it is left to NumPy, who says what is wrong or copies what overlaps."""
        try:
            index = self._row_index(key)
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
        walk.scatter(view, self._region, index, source, self._block_bytes)
        return True

    def _assign(self, part: np.ndarray[Any, Any], value: Any) -> None:
        source = None
        if not assignment.may_overlap(part, value):
            source = assignment.source_of(value, part.shape, part.dtype)
        if source is None:
            part[...] = value  # NumPy says what is wrong, or copies what overlaps
            return
        value = source
        axis = 0 if self.order == "C" else part.ndim - 1
        part, value = np.moveaxis(part, axis, 0), np.moveaxis(value, axis, 0)
        at = 0
        for rows in walk.rows_of(part, self._region, self._block_bytes):
            rows[...] = value[at:at + len(rows)]
            at += len(rows)

    @property
    def _block_bytes(self) -> int:
        return self._runtime._block_bytes()

    def _row_index(self, key: Any) -> np.ndarray[Any, Any] | None:
        """``key`` as numbers of rows, if it takes whole rows that lie scattered; else None."""
        index = np.asarray(key)
        if self.order != "C" and len(self.shape) > 1 or len(self.shape) == 0 or 0 in self.shape:
            return None
        if index.dtype == np.bool_ and index.shape == self.shape[:1]:
            index = np.flatnonzero(index)
        if index.dtype.kind not in "iu" or index.size < _INDEX_COUNT_MIN:
            return None
        index = index.astype(np.int64, copy=False)
        low, high = int(index.min()), int(index.max())
        if low < -len(self) or high >= len(self):
            wrong = low if low < -len(self) else high
            raise IndexError(f"index {wrong} is out of bounds for axis 0 with size {len(self)}")
        return np.where(index < 0, index + len(self), index) if low < 0 else index

    def __iter__(self) -> Iterator[Any]:
        for i in range(len(self)):
            yield self[i]

    @plain_errors
    def take(self, indices: Any, axis: int | None = None, out: Any = None,
             mode: Any = "raise") -> Any:
        """As ndarray.take; whole rows go as by ``gather``."""
        if axis == 0 and out is None and mode == "raise" and np.ndim(indices) > 0:
            return self.gather(indices)
        return self._view().take(indices, axis, out, mode)

    @plain_errors
    def gather(self, rows: Any) -> np.ndarray[Any, Any]:
        """A copy of these rows. Their pages are read many at a time, whatever their order.

        >>> import outcore
        >>> a = outcore.full((100, 2), 7)
        >>> a.gather([5, 90, 5]).shape
        (3, 2)
        """
        index = np.asarray(rows)
        if index.dtype != np.bool_ and index.dtype.kind not in "iu":
            raise IndexError(f"rows are numbers or a mask, not {index.dtype}")
        found = self._row_index(index)
        if found is None:
            return np.array(self._view()[index])
        return walk.gather(self._view().view(np.ndarray), self._region, found, self._block_bytes)

    @plain_errors
    def read(self, key: Any = ...) -> np.ndarray[Any, Any]:
        """A copy of ``self[key]`` in ordinary memory. A failed read is an OSError, not a signal.

        There is no method ``copy``: dask.array.from_array would call it. ``a[...].copy()`` works.

        >>> import outcore
        >>> a = outcore.full(1000, 2.5)
        >>> a.read(slice(10, 12))
        array([2.5, 2.5])
        """
        part = self._basic_part(self._view().view(np.ndarray), key)
        if part is None:
            return np.asarray(self[key])
        out = np.empty(part.shape, part.dtype, self.order)  # type: ignore[call-overload]
        if part.ndim == 0:
            self._region.ensure(*walk.bounds_in(self._region, part))
            out[...] = part
            return out
        axis = 0 if self.order == "C" else part.ndim - 1
        at, into = 0, np.moveaxis(out, axis, 0)
        for rows in walk.rows_of(np.moveaxis(part, axis, 0), self._region, self._block_bytes):
            into[at:at + len(rows)] = rows
            at += len(rows)
        return out

    def __copy__(self) -> np.ndarray[Any, Any]:
        return self.read()

    def __deepcopy__(self, memo: Any) -> np.ndarray[Any, Any]:
        return self.read()
