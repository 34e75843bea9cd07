"""Assignment: values as NumPy takes them, for arrays that are written block by block.

NumPy decides by the whole array what a value means: ``(1, 2.5)`` is one record of a structured
array and two numbers of another. Blocks are assigned from what is decided here, once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_Plain = np.ndarray[Any, Any]


def _as_array(value: Any) -> _Plain | None:
    """The value as an array where it is one or has a buffer; None for scalars and sequences."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (np.generic, str, bytes)):
        return None
    if any(hasattr(value, name) for name in
           ("__array__", "__array_interface__", "__array_struct__")):
        return np.asarray(value)
    try:
        memoryview(value)
    except TypeError:
        return None
    return np.asarray(value)


def may_overlap(part: _Plain, value: Any) -> bool:
    """Whether the value may lie in the memory of the part."""
    array = _as_array(value)
    return array is not None and np.may_share_memory(part, array)


def source_of(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any],
              takes_deep: bool = False, is_flat: bool = False) -> _Plain | None:
    """The value in this shape, for ``part[...] = source``; None where NumPy has to say why not.

    Arrays keep their dtype, as assigning them converts element by element. Everything else is
    converted at once, with the dtype of the target: so a tuple is a record where records are.
    ``takes_deep``: sequences may have leading axes of 1, as arrays may. ``is_flat``: arrays may
    not, either.
    """
    array = _as_array(value)
    try:
        if isinstance(value, np.generic):  # numpy.array() has other rules for what is too large
            array = np.empty((), dtype)
            array[...] = value
        elif array is None:
            array = np.array(value, dtype)
            if array.ndim > len(shape) and not takes_deep:
                return None
        if is_flat and array.ndim > len(shape):
            return None
        while array.ndim > len(shape) and array.shape[0] == 1:
            array = array[0]
        return np.broadcast_to(array, shape)
    except (TypeError, ValueError, ArithmeticError):
        return None
