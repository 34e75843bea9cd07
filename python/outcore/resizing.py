"""Resizing: another shape for an array, and another length for its store."""

from __future__ import annotations

import errno
import math
import os
from typing import TYPE_CHECKING, Any

from . import npy
from .opening import check_size, normalize_shape
from .view import set_block_bytes

if TYPE_CHECKING:
    from .array import Array


def resize(array: Array[Any], shape: Any) -> None:
    """See Array.resize."""
    shape = normalize_shape(shape)
    if -1 in shape:
        raise ValueError("resize: say all of the shape, not -1")
    region = array._region
    region.check("resize")
    if region.access != "read-write":
        raise OSError(errno.EACCES, f"resize: the array is open with mode {array.mode!r}",
                      array.filename or array.url)
    header = b""
    if array._opened.is_npy:
        header = npy.make_header(shape, array.dtype, array.order)
        if len(header) != array.offset:
            raise ValueError(f"resize: the .npy header of shape {shape} needs {len(header)} bytes, "
                             f"and {array.offset} are there: make a new file")
    size = array._lead + math.prod(shape) * array.dtype.itemsize
    check_size(shape, array.dtype, size)
    if size > region.size_bytes:
        _grow(array, size)
    elif size < region.size_bytes:
        _shrink(array, size)
    array.shape = shape
    if header:
        array._region.write(0, header)
        array._region.flush(0, len(header))  # it says what the file's length says
    array._share_memory()


def _grow(array: Array[Any], size: int) -> None:
    try:
        array._region.grow(size)
    except ValueError:  # beyond the addresses that are reserved
        if array._location.is_new:
            raise ValueError(f"resize: {array.url} has no room to grow to {size} bytes: open it "
                             "with reserve=") from None
        _map_anew(array, size, lambda: None)


def _shrink(array: Array[Any], size: int) -> None:
    if array._location.scheme != "file" or array.filename is None:
        return  # what is cut off stays in the store
    path, length = array.filename, array._region.start + size
    _map_anew(array, size, lambda: os.truncate(path, length))


def _map_anew(array: Array[Any], size: int, between: Any) -> None:
    old = array._region
    start, size_before = old.start, old.size_bytes
    options = {k: v for k, v in array._opened.options.items() if v != "auto"}
    page_bytes = old.page_bytes

    def map_it(size: int) -> None:
        array._region = array._runtime._map(array._location, {
            "access": "read-write", "offset": start, "size_bytes": size, "may_create": True,
            "page_bytes": page_bytes, "advice": options.get("advise"),
            "delivery": options.get("delivery"), "frames": options.get("frames"),
            "on_error": options.get("on_error")}, (options.get("budget"), options.get("policy")))
        set_block_bytes(array._region, array._runtime._block_bytes())

    old.unmap()  # BufferError while views live
    try:
        between()
        map_it(size)
    except (OSError, ValueError):  # then the array is what it was
        map_it(size_before)
        array._share_memory()
        raise


