"""View: a part of an outcore array, as an ndarray.

A View is what slicing an Array gives: a NumPy array over the mapped memory, which it keeps alive.
It differs from a plain ndarray in three ways, as numpy.memmap does: it is pickled by reference
(where it lies in which file) and not by its bytes; what is computed from it is a plain ndarray; and
a sum over all of it is brought in block by block.
"""

from __future__ import annotations

import os
import stat
import weakref
from typing import Any

import numpy as np

from . import _core, registry, walk
from .fork_lock import ForkLock
from .location import Location
from .pager import Pager, default_pager, pager_in
from .plain_errors import plain_errors


def lease_of(array: Any) -> _core.Lease | None:
    """The lease at the end of the array's bases; None if its memory is none of ours."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, _core.Lease) else None


class View(np.ndarray[Any, Any]):
    """A part of an outcore array, as an ndarray."""

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        if array is self:
            return array
        return array[()] if return_scalar else np.asarray(array)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if type(found) is View and lease_of(found) is None:  # a copy: no part any more
            return found.view(np.ndarray)
        return found

    def __reduce_ex__(self, protocol: Any) -> Any:
        lease = lease_of(self)
        source = None if lease is None else registry.source_of(lease.region)
        if lease is None or source is None or source.location.is_new:
            return np.asarray(self).__reduce_ex__(protocol)
        region = lease.region
        region.check("pickle")
        begin = self.__array_interface__["data"][0] - region.address
        if source.access == "read-write":
            self.flush()
        where = (source, region.start, region.size_bytes)
        return _reopen, (where, begin, self.shape, self.strides, self.dtype, self.flags.writeable)

    @property
    def filename(self) -> Any:
        """As the array's that it is a part of."""
        lease = lease_of(self)
        return None if lease is None else registry.filename_of(lease.region)

    @plain_errors
    def flush(self) -> None:
        """Writes what changed in it to the store, with its neighbours in the same pages."""
        lease = lease_of(self)
        if lease is not None:
            for at, size in walk.slices(*walk.bounds_in(lease.region, self)):
                lease.region.flush(at, size)

    def __dask_tokenize__(self) -> Any:
        lease = lease_of(self)
        source = None if lease is None else registry.source_of(lease.region)
        stamp = None
        if source is not None and source.access == "read-only":
            stamp = stamp_of(source.location)
        if lease is None or stamp is None:
            from dask.base import normalize_token
            return normalize_token(np.asarray(self))
        begin = self.__array_interface__["data"][0] - lease.region.address
        return ("outcore.View", *stamp, lease.region.start + begin, self.shape,
                self.strides, str(self.dtype))

    def _reduce(self, ufunc: np.ufunc) -> Any:
        lease = lease_of(self)
        if lease is None or not walk.can_reduce(self):
            return None
        return walk.reduce(ufunc, self.view(np.ndarray), lease.region,
                           registry.block_bytes_of(lease.region))

    @plain_errors
    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, **options: Any) -> Any:
        """As ndarray.sum; a sum of everything is brought in block by block."""
        if (axis is None or self.ndim == 1 and axis in (0, -1)) and dtype is None and out is None \
                and not options:
            found = self._reduce(np.add)
            if found is not None:
                return found
        return super().sum(axis, dtype, out, **options)

    @plain_errors
    def min(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        """As ndarray.min; that of everything is brought in block by block."""
        if axis is None and out is None and not options:
            found = self._reduce(np.minimum)
            if found is not None:
                return found
        return super().min(axis, out, **options)

    @plain_errors
    def max(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        """As ndarray.max; that of everything is brought in block by block."""
        if axis is None and out is None and not options:
            found = self._reduce(np.maximum)
            if found is not None:
                return found
        return super().max(axis, out, **options)

    @plain_errors
    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, **options: Any) -> Any:
        """As ndarray.mean; that of all of an array of floats is brought in block by block."""
        if axis is None and dtype is None and out is None and not options \
                and self.dtype.kind == "f":
            found = self._reduce(np.add)
            if found is not None:
                return self.dtype.type(found / self.size)
        return super().mean(axis, dtype, out, **options)


def stamp_of(location: Location) -> tuple[Any, ...] | None:
    """What changes when the file is written by anybody; None where nothing tells: a store that is
    not one file."""
    try:
        about = os.stat(location.path or "")
    except OSError:
        return None
    if not stat.S_ISREG(about.st_mode):
        return None
    return location.url, about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns


# Parts of one array that come back in one process share its region.
_reopened: weakref.WeakValueDictionary[Any, _core.Region] = weakref.WeakValueDictionary()
_reopened_lock = ForkLock()


def _reopen(where: tuple[registry.Source, int, int], begin: int, shape: tuple[int, ...],
            strides: tuple[int, ...] | None, dtype: np.dtype[Any], is_writable: bool) -> View:
    """A View as it was when it was pickled."""
    source, start, size = where
    key = (_core.fork_count(), source, start, size)
    with _reopened_lock:
        region = _reopened.get(key)
        if region is None or not region.is_open:
            is_own = source.budget != (None, None)
            pager = (Pager(source.budget[0], policy=source.budget[1]) if is_own
                     else default_pager() if source.buffer is None else pager_in(source.buffer))
            options = {"access": source.access, "offset": start, "size_bytes": size,
                       **dict(source.options)}
            region = pager.map(source.location, options, source.budget)
            _reopened[key] = region
    buffer: Any = _core.Lease(region)
    if 0 in shape:  # it is nowhere
        begin, strides = 0, None
    view = np.ndarray.__new__(View, shape, dtype, buffer, begin, strides)
    if not is_writable:
        view.flags.writeable = False
    return view
