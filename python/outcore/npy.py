"""Npy: the header of NumPy's file format, read and written (numpy.lib.format has the details)."""

from __future__ import annotations

import ast
import io
import struct
from typing import Any, NamedTuple

import numpy as np

_FORMAT = np.lib.format
_BYTES_MAX = 1 << 20  # of a header, before it is parsed
_AXES_MAX = 64  # NumPy's
_GROWTH_DIGITS = 21  # of the largest length


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
            if version not in _READ:
                raise ValueError(f"version {version[0]}.{version[1]} of the format is newer")
            shape, is_fortran, dtype = _READ[version](file)
            if len(shape) > _AXES_MAX or any(isinstance(n, bool) or n >> 63 > 0 for n in shape):
                raise ValueError(f"its shape is {shape}")
        except OSError:
            raise
        except Exception as error:  # what NumPy's parsers raise of a damaged text is of many kinds
            raise ValueError(f"{path} has no .npy header that can be read ({error}); to open its "
                             "bytes as they are, say format='raw'") from error
        if dtype.hasobject:
            raise ValueError(f"{path} holds Python objects, which are not bytes: numpy.load can")
        if any(length < 0 for length in shape):
            raise ValueError(f"{path} has the shape {shape} in its .npy header, which cannot be: "
                             "restore it; to open its bytes as they are, say format='raw'")
        while dtype.subdtype is not None:  # NumPy makes axes of them, too
            shape, dtype = (*shape, *dtype.shape), dtype.base
        if dtype.itemsize == 0:
            raise ValueError(f"{path} has elements of 0 bytes, by its .npy header ({dtype}): "
                             "numpy.load can")
        return Header(shape, dtype, "F" if is_fortran else "C", file.tell())


def make_header(shape: tuple[int, ...], dtype: np.dtype[Any], order: str) -> bytes:
    """With NumPy's own padding: room for the first axis to grow in place."""
    text = {"descr": _FORMAT.dtype_to_descr(dtype), "fortran_order": order == "F", "shape": shape}
    into = io.BytesIO()
    try:
        _FORMAT.write_array_header_1_0(into, text)
    except UnicodeEncodeError:
        return _header_3(text)
    except ValueError:
        into = io.BytesIO()
        _FORMAT.write_array_header_2_0(into, text)
    return into.getvalue()


# Version 3.0 is as 2.0, in UTF-8: for names of fields that Latin-1 cannot have. NumPy's functions
# for it are private.


def _read_header_3(file: Any) -> tuple[Any, Any, np.dtype[Any]]:
    size_bytes, = struct.unpack("<I", file.read(4))
    if size_bytes > _BYTES_MAX:
        raise ValueError(f"a header of {size_bytes} bytes")
    raw = file.read(size_bytes)
    if len(raw) != size_bytes:
        raise ValueError("it ends within its header")
    said = ast.literal_eval(raw.decode("utf-8"))
    shape, is_fortran = said["shape"], said["fortran_order"]
    if not isinstance(shape, tuple) or not all(isinstance(n, int) for n in shape) or \
            not isinstance(is_fortran, bool):
        raise ValueError(f"its shape is {shape!r}, its order {is_fortran!r}")
    return shape, is_fortran, _FORMAT.descr_to_dtype(said["descr"])


_READ = {(1, 0): lambda file: _FORMAT.read_array_header_1_0(file, _BYTES_MAX),
         (2, 0): lambda file: _FORMAT.read_array_header_2_0(file, _BYTES_MAX),
         (3, 0): _read_header_3}


def _header_3(said: dict[str, Any]) -> bytes:
    """With the room that NumPy leaves for the first axis."""
    shape = said["shape"]
    length = shape[-1 if said["fortran_order"] else 0] if shape else 0
    raw = repr(said).encode("utf-8") + b" " * (_GROWTH_DIGITS - len(repr(length)))
    head = _FORMAT.MAGIC_PREFIX + b"\x03\x00"
    padding = -(len(head) + 4 + len(raw) + 1) % 64
    raw += b" " * padding + b"\n"
    return head + struct.pack("<I", len(raw)) + raw
