"""Elements: where the elements of an array lie in memory, and which bytes a key names."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core, walk
from .pager import Pager
from .shaped import Shaped
from .view import View


def buffer_format(dtype: np.dtype[Any]) -> str | None:
    """The buffer protocol's name of the dtype; None if it has none, or NumPy reads it as another:
    numpy.asarray asks for a buffer first, and for an ``__array_interface__`` only without one."""
    try:
        one: Any = memoryview(np.zeros(1, dtype))  # type: ignore[arg-type]
        return one.format if np.asarray(one).dtype == dtype else None
    except (ValueError, TypeError, BufferError, RuntimeError):
        return None


def interface_of(view: View) -> dict[str, Any]:
    """Its ``__array_interface__``. AttributeError, so that NumPy takes ``__array__``: of records
    with gaps, or with fields in another order than in memory, NumPy would make others of it."""
    interface = dict(view.__array_interface__)
    try:
        is_right = view.dtype.names is None or np.dtype(interface["descr"]) == view.dtype
    except (ValueError, TypeError):
        is_right = False
    if not is_right:
        raise AttributeError(f"no array interface says {view.dtype}")
    return interface


def _strides_of(shape: tuple[int, ...], item_bytes: int, order: str) -> tuple[int, ...]:
    axes = shape[1:][::-1] if order == "C" else shape[:-1]
    strides = [item_bytes]
    for length in axes:
        strides.append(strides[-1] * max(length, 1))
    strides = strides[:len(shape)]
    return tuple(strides[::-1] if order == "C" else strides)


class Elements(Shaped):
    """Those of one array: a region, and the layout of the elements in it."""

    def __init__(self, region: _core.Region, lead: int, shape: tuple[int, ...],
                 dtype: np.dtype[Any], order: str, pager: Pager) -> None:
        self.region = region  # another one after a fork, or when the array was mapped anew
        self.lead = lead  # bytes of the region before the first element
        self.dtype = dtype
        self.order = order
        self.pager = pager
        self.set_shape(shape)

    def set_shape(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.strides = _strides_of(shape, self.itemsize, self.order)

    def __len__(self) -> int:
        return self.shape[0]

    def view(self) -> View:
        buffer: Any = _core.Lease(self.region)
        order: Any = self.order
        return np.ndarray.__new__(View, self.shape, self.dtype, buffer, self.lead, None, order)

    @property
    def outer_axis(self) -> int:
        """The axis along which the elements of one index are neighbours in the store."""
        return 0 if self.order == "C" else len(self.shape) - 1

    @property
    def is_by_columns(self) -> bool:
        """Whether the elements of a row lie in as many places as there are columns."""
        return self.order == "F" and len(self.shape) > 1

    @property
    def block_bytes(self) -> int:
        """How much is worked on at a time."""
        return self.pager.block_bytes()

    def offset_of(self, key: Any) -> int | None:
        """Where one element begins in the region; None if ``key`` does not name one by numbers."""
        keys = key if type(key) is tuple else (key,)
        if len(keys) != len(self.shape):
            return None
        offset = self.lead
        for k, length, stride in zip(keys, self.shape, self.strides):
            if type(k) is not int and not isinstance(k, np.integer):
                return None
            if not -length <= k < length:
                return None  # NumPy says why
            offset += int(k if k >= 0 else k + length) * stride
        return offset

    def range_of(self, key: Any) -> tuple[int, int]:
        """The bytes of the region that hold ``key``: from, and how many. None is all of it."""
        self.region.check("use")
        if key is None:
            return self.lead, self.nbytes
        if isinstance(key, range):
            key = slice(key.start, key.stop, key.step)
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, (list, np.ndarray)) for k in keys):
            raise IndexError("a list of rows is not a range: give a slice")
        return walk.bounds_in(self.region, self.view()[keys if ... in keys else (*keys, ...)])
