"""Npy: the header of NumPy's file format, read and written (numpy.lib.format has the details)."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np

_FORMAT = np.lib.format


class Header(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: str
    size_bytes: int  # of the header: where the data begin


def is_npy_name(path: str | None) -> bool:
    return path is not None and path.lower().endswith(".npy")


def read_header(path: str) -> Header:
    """Raises ValueError if the file is not an ``.npy`` file, or holds Python objects."""
    with open(path, "rb") as file:
        try:
            version = _FORMAT.read_magic(file)
            read = (_FORMAT.read_array_header_1_0 if version == (1, 0)
                    else _FORMAT.read_array_header_2_0)
            shape, is_fortran, dtype = read(file)
        except ValueError as error:
            raise ValueError(f"{path} has no .npy header that can be read ({error}); to open its "
                             "bytes as they are, say format='raw'") from error
        if dtype.hasobject:
            raise ValueError(f"{path} holds Python objects, which are not bytes: numpy.load can")
        if any(length < 0 for length in shape):
            raise ValueError(f"{path} has the shape {shape} in its .npy header, which cannot be: "
                             "restore it; to open its bytes as they are, say format='raw'")
        while dtype.subdtype is not None:  # NumPy makes axes of them, too
            shape, dtype = (*shape, *dtype.shape), dtype.base
        return Header(shape, dtype, "F" if is_fortran else "C", file.tell())


def make_header(shape: tuple[int, ...], dtype: np.dtype[Any], order: str) -> bytes:
    """With NumPy's own padding: room for the first axis to grow in place."""
    text = {"descr": _FORMAT.dtype_to_descr(dtype), "fortran_order": order == "F", "shape": shape}
    into = io.BytesIO()
    try:
        _FORMAT.write_array_header_1_0(into, text)
    except ValueError:
        into = io.BytesIO()
        _FORMAT.write_array_header_2_0(into, text)
    return into.getvalue()
