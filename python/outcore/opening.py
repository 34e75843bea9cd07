"""Opening: how a path or URL becomes a region, and which array lies in it."""

from __future__ import annotations

import errno
import math
import operator
import os
import pickle
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core, npy, registry
from .location import Location, as_region, locate
from .modes import Mode, parse_mode
from .pager import Pager, page_bytes_of
from .sizes import parse_bytes

_SYSTEM_PAGE = 4096


@dataclass(frozen=True)
class Layout:
    """Where an array's elements lie in its store."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: str
    offset: int
    header: bytes = b""  # to be written first

    def __post_init__(self) -> None:
        check_size(self.shape, self.dtype, self.end)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def end(self) -> int:
        return self.offset + self.nbytes


@dataclass(frozen=True)
class Plan:
    """What is to be opened and how. Nothing has been made for it yet."""

    location: Location
    mode: Mode
    layout: Layout
    is_npy: bool
    is_there: bool  # what is opened, or emptied
    is_created: bool
    is_new_file: bool  # made by opening it
    map_options: dict[str, Any]
    options: dict[str, Any]  # of ``open``, to open it again
    runtime: Any  # a Runtime, if one is named

    @property
    def owns_runtime(self) -> bool:
        """Whether it gets a runtime of its own, which ends with it."""
        return self.options["budget"] is not None or self.options["policy"] is not None


@dataclass(frozen=True)
class Opened:
    """All that an Array is made of."""

    plan: Plan
    region: _core.Region
    pager: Pager
    runtime: Any  # the Runtime of this pager
    reopen: Callable[..., Any]  # makes an Array of a kind, and of what ``Array.__reduce__`` gives


def normalize_shape(shape: Any) -> tuple[int, ...]:
    try:
        shape = (operator.index(shape),)
    except TypeError:
        shape = tuple(operator.index(n) for n in shape)
    if any(n < -1 for n in shape) or shape.count(-1) > 1:
        raise ValueError(f"shape {shape} is not valid: lengths are 0 or more, at most one is -1")
    return shape


def check_size(shape: tuple[int, ...], dtype: np.dtype[Any], size_bytes: int) -> None:
    """ValueError for what no address space holds."""
    if size_bytes >= 1 << 63:
        raise ValueError(f"shape {shape} of {dtype} takes {size_bytes:,} bytes, more than there "
                         "are addresses: ask for less")


def normalize_dtype(dtype: Any) -> np.dtype[Any]:
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise ValueError(f"dtype {dtype} holds Python objects, which are not bytes that fit in "
                         "a store")
    if dtype.itemsize == 0:
        raise ValueError(f"dtype {dtype} has items of 0 bytes: give it a length")
    return dtype


def _without_subarrays(shape: Any, dtype: Any) -> tuple[Any, Any]:
    """Elements that are arrays are axes of the array, as NumPy has it."""
    dtype = None if dtype is None else normalize_dtype(dtype)
    while dtype is not None and dtype.subdtype is not None:
        shape = (*((-1,) if shape is None else normalize_shape(shape)), *dtype.shape)
        dtype = dtype.base
    return shape, dtype


def _existing_npy(location: Location, shape: Any, dtype: Any, order: str | None,
                  offset: int, may_extend: bool) -> Layout:
    assert location.path is not None
    header = npy.read_header(location.path)
    end, size = Layout(header.shape, header.dtype, header.order, header.size_bytes).end, \
        location.size_bytes()
    if end > size and not may_extend:
        raise ValueError(f"{location.path} was cut short: by its header it has {end} bytes, and "
                         f"{size} are there: restore it, or say format='raw'")
    asked = ("shape", None if shape is None else normalize_shape(shape), header.shape), \
            ("dtype", dtype, header.dtype), \
            ("order", order, header.order), ("offset", offset or None, header.size_bytes)
    for name, wanted, found in asked:
        is_any_order = name == "order" and sum(n > 1 for n in header.shape) < 2
        if wanted is not None and wanted != found and not is_any_order:
            raise ValueError(f"{location.path} is an .npy file of {name} {found}, and {wanted} is "
                             f"asked for: leave {name} out, or say format='raw'")
    return Layout(header.shape, header.dtype, header.order, header.size_bytes)


def _existing_raw(location: Location, shape: Any, dtype: Any, order: str | None, offset: int,
                  may_extend: bool) -> Layout:
    dtype = np.dtype(np.uint8) if dtype is None else dtype
    size = location.size_bytes()
    wanted = (-1,) if shape is None else normalize_shape(shape)
    if -1 in wanted:
        each = dtype.itemsize * -math.prod(wanted)
        if size < offset or each == 0 or (size - offset) % each != 0:
            raise ValueError(f"{location.shown}: the {max(size - offset, 0)} bytes from offset "
                             f"{offset} are not a whole number of {each} bytes: give a shape")
        wanted = tuple((size - offset) // each if n == -1 else n for n in wanted)
    layout = Layout(wanted, dtype, order or "C", offset)
    if layout.end > size and not may_extend:
        raise ValueError(f"{location.shown}: {layout.nbytes} bytes from offset {offset} are asked "
                         f"for, and it ends at {size}: ask for less, or extend it with mode 'a'")
    return layout


def _created(location: Location, is_npy: bool, shape: Any, dtype: Any, order: str | None,
             offset: int) -> Layout:
    if shape is None or dtype is None:
        raise ValueError(f"to create {location.shown}, say its shape and dtype")
    shape = normalize_shape(shape)
    if -1 in shape:
        raise ValueError(f"to create {location.shown}, say all of its shape, not -1")
    if not is_npy:
        return Layout(shape, dtype, order or "C", offset)
    if offset:
        raise ValueError("an .npy file's data begin after its header: leave offset out")
    header = npy.make_header(shape, dtype, order or "C")
    return Layout(shape, dtype, order or "C", len(header), header)


def _create(pager: Pager, location: Location, mode: Mode, layout: Layout) -> None:
    """Makes the file, or empties it. Mapping makes it long, and makes other stores."""
    if mode.truncates and registry.is_open(location.identity()):
        raise OSError(errno.EBUSY, "it is open in this process, and would be emptied under it: "
                      "close that array first, or open it with mode 'r+'", location.path)
    is_kept = location.scheme != "file" and not location.is_new
    if is_kept and mode.must_create and location.exists():
        raise FileExistsError(errno.EEXIST, "mode 'x' makes what is not there: name another, or "
                              "say 'w' to empty it", location.path or location.shown)
    if location.scheme != "file" or location.path is None:
        return
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL if mode.must_create else 0)
    descriptor = _open_file(location.path, flags)
    try:
        about = os.fstat(descriptor)
        if mode.truncates and stat.S_ISREG(about.st_mode) and about.st_size != 0:
            pager.shorten(location, 0)
        written = 0
        while written < len(layout.header):
            written += os.write(descriptor, layout.header[written:])
    finally:
        os.close(descriptor)


def _open_file(path: str, flags: int) -> int:
    remedies = {errno.ENOENT: "make its folder first", errno.EISDIR: "name a file in it",
                errno.EEXIST: "name another, or say 'w' to empty it, 'a' to go on with it",
                errno.EACCES: "get write permission, or name another folder",
                errno.EROFS: "name another folder"}
    try:
        return os.open(path, flags, 0o666)
    except OSError as error:
        number = error.errno or errno.EIO
        remedy = remedies.get(number)
        text = os.strerror(number) + (f": {remedy}" if remedy else "")
        raise OSError(number, text, path) from None


def _check_before_emptying(plan: Plan, pager: Pager) -> None:
    """Raises what mapping would, while what is to be emptied is still there."""
    path = plan.location.path
    if plan.location.scheme != "file" or path is None or \
            registry.is_open(plan.location.identity()):
        return
    descriptor = _open_file(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        size, end = os.fstat(descriptor).st_size, plan.layout.end
        if size == 0:
            return
        asked = plan.map_options
        reserve = max(asked["reserve_bytes"], asked["size_bytes"])
        looked_at = asked | {"offset": 0, "size_bytes": min(size, asked["size_bytes"]),
                             "reserve_bytes": reserve, "may_create": False}
        pager.map(plan.location, looked_at,
                  (plan.options["budget"], plan.options["policy"])).unmap()
        if end > size:
            os.ftruncate(descriptor, end)
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        raise OSError(errno.EFBIG, f"{os.strerror(errno.EFBIG)}: its filesystem, or ulimit -f, "
                      f"takes no file of {end:,} bytes: ask for less", path) from None
    finally:
        os.close(descriptor)


def _empty_store(pager: Pager, location: Location) -> None:
    """Of a store that is not a file: what it holds is gone, and its size stays."""
    if location.size_bytes() == 0:
        return
    region = pager.map(location, {"access": "read-write"})
    region.discard(0, region.size_bytes // _SYSTEM_PAGE * _SYSTEM_PAGE)
    rest = region.size_bytes % _SYSTEM_PAGE
    region.write(region.size_bytes - rest, bytes(rest))
    region.unmap()


def _check_words(order: str | None, format: str | None, storage_options: Any) -> None:
    if order not in (None, "C", "F"):
        raise ValueError(f"order {order!r} is unknown: write 'C' or 'F'")
    if format not in (None, "npy", "raw"):
        raise ValueError(f"format {format!r} is unknown: write 'npy' or 'raw'")
    if storage_options:
        raise ValueError("storage_options: there is no store that takes any; parameters of a store "
                         "stand in its URL (docs/reference/stores.md)")


def make_plan(url: Any, mode: str = "r", shape: Any = None, dtype: Any = None,
              order: str | None = None, offset: int = 0, *,
              budget: Any = None, page: Any = "auto", policy: str | None = None,
              advise: str = "auto", runtime: Any = None, reserve: Any = None,
              format: str | None = None, delivery: str | None = None, frames: str | None = None,
              on_error: str | None = None, storage_options: Any = None,
              may_extend: bool = False) -> Plan:
    """What these arguments of ``open`` mean. ``may_extend``: r+ makes a file longer, as in NumPy.
    """
    location, how = as_region(locate(url)), parse_mode(mode)
    _check_words(order, format, storage_options)
    if runtime is not None and not hasattr(runtime, "_pager"):
        raise TypeError(f"runtime={runtime!r} is not an outcore.Runtime: make one first, as in "
                        "outcore.Runtime(budget='4GB')")
    if runtime is not None and (budget is not None or policy is not None):
        raise ValueError("a runtime has its budget and policy: name either a runtime, or these")
    offset = operator.index(offset)
    if offset < 0:
        raise ValueError(f"offset {offset} is negative")
    if format is None and (location.path or "").lower().endswith(".npz"):
        raise ValueError(f"{location.path}: an .npz file is an archive of .npy files, which cannot "
                         "be mapped: unzip it and open one of them, or save each array as .npy "
                         "(format='raw' takes the archive's bytes as they are)")
    is_npy = location.scheme == "file" and (
        format == "npy" or (format is None and npy.is_npy_name(location.path)))
    if location.is_new and not how.may_create:
        raise ValueError(f"{location.shown} is new each time it is opened: use mode 'w', or open a "
                         "file")
    shape, dtype = _without_subarrays(shape, dtype)
    is_there = existed = (how.may_create or location.path is not None) and location.exists()
    if how.name == "a" and is_there:
        is_there = location.size_bytes() > 0
    is_created = how.may_create and (how.name != "a" or not is_there)
    may_extend = (may_extend or how.name == "a") and how.access == "read-write"
    if is_created:
        layout = _created(location, is_npy, shape, dtype, order, offset)
    elif not is_there and location.path is not None:
        raise FileNotFoundError(errno.ENOENT, f"mode {mode!r} opens what is there; to create it, "
                                "say 'w' or 'a'", location.path)
    elif is_npy:
        layout = _existing_npy(location, shape, dtype, order, offset, may_extend)
    else:
        layout = _existing_raw(location, shape, dtype, order, offset, may_extend)

    start = layout.offset // _SYSTEM_PAGE * _SYSTEM_PAGE
    size = layout.end - start
    map_options = {
        "access": how.access, "offset": start, "size_bytes": size,
        "may_create": is_created or may_extend, "page_bytes": page_bytes_of(page),
        "reserve_bytes": 0 if reserve is None else max(size, parse_bytes(reserve) + size -
                                                       layout.nbytes),
        "advice": advise, "delivery": delivery, "frames": frames, "on_error": on_error}
    options = {"budget": budget, "page": page, "policy": policy, "advise": advise,
               "reserve": reserve, "format": "npy" if is_npy else "raw", "delivery": delivery,
               "frames": frames, "on_error": on_error}
    is_new_file = is_created and not existed and location.scheme == "file"
    return Plan(location, how, layout, is_npy, is_there, is_created, is_new_file, map_options,
                options, runtime)


def reference_to(plan: Plan, shape: tuple[int, ...], buffer: str | None) -> tuple[Any, ...]:
    """What another process opens it by, in the buffer of this name, if any; PicklingError where
    there is no such thing."""
    if plan.location.is_new:
        raise pickle.PicklingError(f"{plan.location.shown} is of this process only: open a file "
                                   "instead, or pickle a.read()")
    if plan.location.is_descriptor:
        raise pickle.PicklingError("its file has no name by which another process could open it: "
                                   "pickle a.read()")
    options = {k: v for k, v in plan.options.items()
               if v is not None and (k == "budget" or v != "auto")}
    return (plan.location.url, plan.mode.for_reopening, shape, plan.layout.dtype,
            plan.layout.order, None if plan.is_npy else plan.layout.offset, options,
            None if plan.owns_runtime else buffer)


def map_plan(plan: Plan, pager: Pager) -> _core.Region:
    """Makes or empties what is to be, and maps it."""
    if plan.mode.truncates and plan.is_there:
        _check_before_emptying(plan, pager)
    if plan.is_created:
        _create(pager, plan.location, plan.mode, plan.layout)
    if plan.mode.truncates and plan.location.scheme != "file" and plan.is_there:
        _empty_store(pager, plan.location)
    try:
        return pager.map(plan.location, plan.map_options,
                         (plan.options["budget"], plan.options["policy"]))
    except BaseException:
        if plan.is_new_file:
            os.unlink(plan.location.path or "")
        raise
