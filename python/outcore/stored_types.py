"""Stored types: how a container names a NumPy dtype, and how the dtype comes back."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

# What a container's own word does not say of a dtype is noted in this attribute: records, dates.
NOTE = "numpy"


def kept(dtype: np.dtype[Any]) -> tuple[str, np.dtype[Any], str]:
    """The container's word for a dtype, the dtype of what is kept, and what else to note of it.

    >>> kept(np.dtype(">i4"))[0], kept(np.dtype("M8[s]"))[2]
    ('<i4', '<M8[s]')
    """
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise TypeError(f"{dtype} holds Python objects, whose bytes mean nothing elsewhere: "
                        "store numbers, or text as str or S")
    if dtype.kind == "U":
        raise TypeError(f"{dtype} is text of 4 bytes a letter: encode it, "
                        "numpy.char.encode(values), or store one str")
    little = dtype.newbyteorder("<")
    if dtype.names is not None:
        return f"V{little.itemsize}", little, repr(_describe(little))
    if dtype.kind in "mM":
        return "<i8", little, little.str
    return little.str.lstrip("|") if dtype.kind in "SV" else little.str, little, ""


def dtype_of(kind: str, note: str) -> np.dtype[Any]:
    """The dtype that was stored. A note that does not fit the elements' size is passed over.

    >>> dtype_of("V6", "[('x', '<f4'), ('n', '<i2')]").names
    ('x', 'n')
    """
    plain: np.dtype[Any] = np.dtype(kind)
    if not note:
        return plain
    try:
        noted = _read(ast.literal_eval(note) if note[0] in "[{" else note)
    except (ValueError, SyntaxError, TypeError, LookupError, ArithmeticError, AttributeError,
            RecursionError, MemoryError):
        return plain
    return noted if noted.itemsize == plain.itemsize and not noted.hasobject else plain


def _describe(dtype: np.dtype[Any]) -> Any:
    """As .npy files do; fields that overlap or are out of order, which these cannot say, by
    name."""
    if dtype.subdtype is not None:
        return _describe(dtype.subdtype[0]), dtype.subdtype[1]
    if dtype.fields is None or dtype.names is None:
        return dtype.str
    try:
        return np.lib.format.dtype_to_descr(dtype)
    except ValueError:
        fields = [dtype.fields[name] for name in dtype.names]
        return {"names": list(dtype.names), "formats": [_describe(field[0]) for field in fields],
                "offsets": [field[1] for field in fields], "itemsize": dtype.itemsize}


def _read(description: Any) -> np.dtype[Any]:
    if isinstance(description, dict):
        formats: Any = {**description, "formats": [_read(f) for f in description["formats"]]}
        fields: np.dtype[Any] = np.dtype(formats)
        return fields
    if isinstance(description, tuple):
        return np.dtype((_read(description[0]), description[1]))
    return np.lib.format.descr_to_dtype(description)
