"""Resizing: another shape for an array, and another length for its store."""

from __future__ import annotations

import errno
import math
from typing import Any

from . import npy, registry
from .elements import Elements
from .opening import Plan, check_size, normalize_shape


_REGION_BYTES_MAX = 1 << 46  # as of any map


def resize(elements: Elements, plan: Plan, shape: Any) -> None:
    """See Array.resize. ``plan`` is what the array was opened by."""
    shape = normalize_shape(shape)
    if -1 in shape:
        raise ValueError("resize: say all of the shape, not -1")
    region = elements.region
    region.check("resize")
    if region.access != "read-write":
        raise OSError(errno.EACCES, f"resize: the array is open with mode {plan.mode.name!r}",
                      registry.filename_of(region) or plan.location.shown)
    header = b""
    if plan.is_npy:
        header = npy.make_header(shape, elements.dtype, elements.order)
        if len(header) != plan.layout.offset:
            raise ValueError(f"resize: the .npy header of shape {shape} needs {len(header)} bytes, "
                             f"and {plan.layout.offset} are there: make a new file")
    size = elements.lead + math.prod(shape) * elements.dtype.itemsize
    check_size(shape, elements.dtype, size)
    if size > _REGION_BYTES_MAX:
        raise OSError(errno.EFBIG, "resize: more than 64 TiB of addresses: ask for less",
                      registry.filename_of(region) or plan.location.shown)
    if size > region.size_bytes:
        _grow(elements, plan, size)
    elif size < region.size_bytes:
        _shrink(elements, plan, size)
    elements.set_shape(shape)
    if header:
        elements.region.write(0, header)
        elements.region.flush(0, len(header))  # it says what the file's length says


def _grow(elements: Elements, plan: Plan, size: int) -> None:
    try:
        elements.region.grow(size)
    except ValueError:  # beyond the addresses that are reserved
        if plan.location.is_new:
            raise ValueError(f"resize: {plan.location.shown} has no room to grow to {size} bytes: "
                             "open it with reserve=") from None
        _map_anew(elements, plan, size, lambda: None)


def _shrink(elements: Elements, plan: Plan, size: int) -> None:
    path = registry.filename_of(elements.region)
    if plan.location.scheme != "file" or path is None:
        return  # what is cut off stays in the store
    if registry.is_open(plan.location.identity(), elements.region):
        raise OSError(errno.EBUSY, "resize: another array of this process has it open, and it "
                      "would be cut short under that one: close that array first", path)
    length = elements.region.start + size
    _map_anew(elements, plan, size, lambda: elements.pager.shorten(plan.location, length))


def _map_anew(elements: Elements, plan: Plan, size: int, between: Any) -> None:
    old = elements.region
    start, size_before = old.start, old.size_bytes
    options = {k: v for k, v in plan.options.items() if v != "auto"}
    page_bytes = old.page_bytes

    def map_it(size: int) -> None:
        elements.region = elements.pager.map(plan.location, {
            "access": "read-write", "offset": start, "size_bytes": size, "may_create": True,
            "page_bytes": page_bytes, "advice": options.get("advise"),
            "delivery": options.get("delivery"), "frames": options.get("frames"),
            "on_error": options.get("on_error")}, (options.get("budget"), options.get("policy")))

    old.unmap()  # BufferError while views live
    try:
        between()
        map_it(size)
    except (OSError, ValueError):  # then the array is what it was
        map_it(size_before)
        raise
