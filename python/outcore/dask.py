"""Dask: an outcore array as a dask array, without a copy."""

from __future__ import annotations

import uuid
import weakref
from typing import Any

import numpy as np

from .elements import Elements
from .location import Location
from .view import stamp_of

_writable: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def token_of(elements: Elements, location: Location, mode: str, offset: int) -> tuple[Any, ...]:
    """Equal for the same data: a file's that can only be read here. Others are each of their own,
    since what they hold can change, or nothing tells whether it did."""
    what = (elements.shape, str(elements.dtype), elements.order, offset)
    stamp = stamp_of(location) if mode == "r" else None
    if stamp is not None:
        return ("outcore.Array", *stamp, *what)
    name = _writable.setdefault(elements.region, uuid.uuid4().hex)
    return ("outcore.Array", name, *what)


class Source:
    """As little of an Array as dask needs: what has more of it, dask copies."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, array.dtype, array.ndim

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self.array[key])

    def __reduce__(self) -> Any:
        return Source, (self.array,)

    def __dask_tokenize__(self) -> Any:
        return self.array.__dask_tokenize__()


def _chunks_of(ndim: int, order: str, chunks: Any) -> Any:
    """'auto' as runs of the file: the axes whose elements are neighbours stay whole."""
    if chunks != "auto" or ndim < 2:
        return chunks
    whole = (-1,) * (ndim - 1)
    return ("auto", *whole) if order == "C" else (*whole, "auto")


def to_dask(array: Any, chunks: Any = "auto", name: str | None = None) -> Any:
    """Of an Array; see Array.to_dask.

    >>> import outcore
    >>> a = outcore.full((1000, 100), 1.0)
    >>> float(a.to_dask().sum().compute(scheduler="threads"))
    100000.0
    """
    import dask.array
    from dask.base import tokenize
    return dask.array.from_array(Source(array), chunks=_chunks_of(array.ndim, array.order, chunks),
                                 name=name or f"outcore-{tokenize(array)}", asarray=True,
                                 fancy=True, lock=False,
                                 meta=np.empty((0,) * array.ndim, array.dtype))
