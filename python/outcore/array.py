"""Array: an array whose elements rest in a store, and are in memory while they are used."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _core, forks, registry, walk
from .array_items import ArrayItems, Item
from .array_memory import ArrayMemory
from .ndarray_methods import NdarrayMethods
from .opening import Opened, prepare
from .row_swaps import RowSwaps
from .shaped import Shaped
from .sizes import parse_bytes
from .view import View, set_block_bytes


def _format_of(dtype: np.dtype[Any]) -> str | None:
    """The buffer protocol's name of the dtype; None if it has none, or NumPy reads it as another:
    numpy.asarray asks for a buffer first, and for an ``__array_interface__`` only without one."""
    try:
        one: Any = memoryview(np.zeros(1, dtype))  # type: ignore[arg-type]
        return one.format if np.asarray(one).dtype == dtype else None
    except (ValueError, TypeError, BufferError, RuntimeError):
        return None


class Array(ArrayItems[Item], ArrayMemory, NdarrayMethods, Shaped, _core.Memory):
    """An array in a store. ``outcore.open`` and its neighbours make one.

    It has the attributes and methods of an ndarray, but is none: ``numpy.asarray(a)`` is the
    ndarray over the same memory, and so is ``a[...]``; both keep the array open. Slicing gives
    views, arithmetic gives plain ndarrays.

    >>> import outcore
    >>> with outcore.zeros((4, 3)) as a:
    ...     a[1] = [1, 2, 3]
    ...     a.sum(axis=0).tolist()
    [1.0, 2.0, 3.0]
    >>> a.closed
    True
    """

    def __init__(self, opened: Opened) -> None:
        super().__init__()
        self._opened = opened
        self._mapped: _core.Region = opened.region
        self._runtime = opened.runtime
        self._location = opened.location
        self._is_leak = not opened.location.is_new  # scratch may be dropped, as memory may
        layout = opened.layout
        self.shape: tuple[int, ...] = layout.shape
        self.dtype: np.dtype[Item] = layout.dtype
        self.order: str = layout.order
        self.offset: int = layout.offset  # of the first element in the store
        self.mode: str = opened.mode.name
        self._lead = layout.offset - opened.region.start
        self._swaps = RowSwaps()
        set_block_bytes(self._region, opened.runtime._block_bytes())
        self._share_memory()
        opened.runtime._arrays[id(self)] = self

    def _share_memory(self) -> None:
        self._bind(self._region, self._lead, list(self.shape), list(self.strides),
                   self.dtype.itemsize, _format_of(self.dtype))
        self._strides = self.strides

    # -- what it is --

    @property
    def strides(self) -> tuple[int, ...]:
        axes = self.shape[1:][::-1] if self.order == "C" else self.shape[:-1]
        strides = [self.itemsize]
        for length in axes:
            strides.append(strides[-1] * max(length, 1))
        strides = strides[:self.ndim]
        return tuple(strides[::-1] if self.order == "C" else strides)

    @property
    def url(self) -> str:
        """What it was opened by, with an absolute path."""
        return self._location.url

    @property
    def filename(self) -> Any:
        """The absolute path of its file or folder; None for scratch and memory. That of a
        ``memmap`` is a path object where it was opened by one, as numpy.memmap's is."""
        return registry.filename_of(self._mapped)

    @property
    def runtime(self) -> Any:
        """The runtime whose budget it shares."""
        return self._runtime

    @property
    def flags(self) -> Any:
        return self._view().flags

    @property
    def T(self) -> View:  # noqa: N802 (NumPy's name)
        return self._view().T

    @property
    def mT(self) -> View:  # noqa: N802 (NumPy's name)
        return self._view().mT

    @property
    def real(self) -> Any:
        return self._view().real

    @property
    def imag(self) -> Any:
        return self._view().imag

    @property
    def flat(self) -> Any:
        return self._view().flat

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    # -- its memory --

    @property
    def _region(self) -> _core.Region:
        mapped = self._mapped
        if mapped.is_inherited and forks.may_remap(self):
            return forks.remap(self)
        return mapped

    @_region.setter
    def _region(self, region: _core.Region) -> None:
        self._mapped = region

    def _view(self) -> View:
        buffer: Any = _core.Lease(self._region)
        order: Any = self.order
        return np.ndarray.__new__(View, self.shape, self.dtype, buffer, self._lead, None, order)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        view = self._view()
        interface = dict(view.__array_interface__)
        interface["data"] = _core.Lease(self._region, self._lead)  # keeps the array open
        interface["strides"] = None if self.order == "C" else view.strides
        return interface

    def iter_chunks(self, chunk: int | str | None = None,
                    axis: int | None = None) -> Iterator[View]:
        """Consecutive parts along the first axis (the last, in order F), as views.

        ``chunk`` is a number of rows, or text as '8MiB'; by default what suits the budget. Each
        part is brought in before it comes, and the next one while you work on it.

        >>> import outcore
        >>> a = outcore.full((1000, 4), 1.0)
        >>> sum(float(part.sum()) for part in a.iter_chunks(300))
        4000.0
        """
        axis = (0 if self.order == "C" else self.ndim - 1) if axis is None else axis
        view: Any = np.moveaxis(self._view(), axis, 0)
        block_bytes = self._block_bytes
        if isinstance(chunk, str):
            block_bytes = parse_bytes(chunk)
        elif chunk is not None:
            block_bytes = max(1, chunk * max(view.nbytes // max(len(view), 1), 1))
        part: Any = None
        try:
            for part in walk.rows_of(view, self._region, block_bytes):
                yield np.moveaxis(part, 0, axis)
        except OSError as error:  # see plain_errors
            del view, part
            raise error.with_traceback(None)  # noqa: B904 (the same error)

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """As ndarray.tofile, by copies of parts: it works with every delivery of faults."""
        if sep:
            self._view().tofile(fid, sep, format)
        elif hasattr(fid, "write"):
            # NumPy writes the first axis outermost, whatever the order.
            for part in self.iter_chunks(axis=0) if self.shape else [self._view()]:
                np.array(part, order="C").tofile(fid)
        else:
            with builtins.open(fid, "wb") as file:
                self.tofile(file)

    # -- by reference --

    def _reference(self) -> tuple[Any, ...]:
        if self._location.is_new:
            import pickle
            raise pickle.PicklingError(
                f"{self.url} is of this process only: open a file instead, or pickle a.read()")
        if self._location.is_descriptor:
            import pickle
            raise pickle.PicklingError("its file has no name by which another process could open "
                                       "it: pickle a.read()")
        self._region.check("pickle")
        self.flush()
        options = {k: v for k, v in self._opened.options.items() if v not in (None, "auto")}
        return (self._location.url, self._opened.mode.for_reopening, self.shape, self.dtype,
                self.order, None if self._opened.is_npy else self.offset, options)

    def __reduce__(self) -> Any:
        return _reopen, (type(self), self._reference())

    def __dask_tokenize__(self) -> Any:
        from .dask import token_of
        return token_of(self)

    def to_dask(self, chunks: Any = "auto", name: str | None = None) -> Any:
        """A dask array over it. Nothing is copied: tasks open it by reference."""
        from .dask import to_dask
        return to_dask(self, chunks, name)

    # -- its end --

    @property
    def closed(self) -> bool:
        return not self._mapped.is_open

    def close(self) -> None:
        """Writes back what changed, and unmaps it. Closing twice does nothing.

        BufferError while views of it live: arrays that were sliced out of it, buffers, tensors.
        """
        if self.closed:
            return
        if self._mapped.is_inherited:
            return  # the parent's, who closes it
        self._mapped.unmap()
        if self._opened.owns_runtime:
            self._runtime.close()

    def __enter__(self) -> Array[Item]:
        self._region.check("enter")
        return self

    def __exit__(self, kind: Any = None, *exception: object) -> None:
        try:
            self.close()
        except BufferError:
            if kind is None:
                raise
            # What failed is more important, and its traceback may hold views: closed without them.
            self._region.close_when_unused()
            if self._opened.owns_runtime:
                self._runtime.close()

    def __del__(self) -> None:
        region = getattr(self, "_mapped", None)
        if region is None or not region.is_open or region.is_inherited:
            return
        if self._is_leak:
            warnings.warn(f"unclosed outcore array {self.url}", ResourceWarning, source=self,
                          stacklevel=2)
        if region.exports == 0:
            self.close()


def _reopen(kind: type[Array[Any]], reference: tuple[Any, ...]) -> Array[Any]:
    """An Array as it was when it was pickled; 'w' comes back as 'r+'."""
    url, mode, shape, dtype, order, offset, options = reference
    array = kind.__new__(kind)
    Array.__init__(array, prepare(url, mode, shape, dtype, order, offset or 0, **options))
    return array
