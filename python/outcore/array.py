"""Array: an array whose elements rest in a store, and are in memory while they are used."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import EllipsisType
from typing import Any, overload

import numpy as np

from . import _core, dask, description, forks, items, ranges, registry, resizing, table, words
from .elements import Elements, buffer_format, interface_of
from .ndarray_methods import NdarrayMethods
from .opening import Opened, reference_to
from .plain_errors import plain_errors
from .row_swaps import RowSwaps
from .shaped import Item, ShapedAsOpened
from .view import View

_BAR_CELLS = 48


class Array(NdarrayMethods, ShapedAsOpened[Item], _core.Memory):
    """An array in a store. ``outcore.open`` and its neighbours make one.

    It has the attributes and methods of an ndarray, but is none: ``numpy.asarray(a)`` is the
    ndarray over the same memory, and so is ``a[...]``; both keep the array open. Slicing gives
    views, arithmetic gives plain ndarrays.

    A ``range`` or ``key`` is anything that indexes the array: None for all of it, a slice, a
    tuple, a number. Where it is about memory it is widened to whole pages, and to one run of bytes.

    >>> import outcore
    >>> with outcore.zeros((4, 3)) as a:
    ...     a[1] = [1, 2, 3]
    ...     a.sum(axis=0).tolist()
    [1.0, 2.0, 3.0]
    >>> a.closed
    True
    """

    _elements: Elements

    def __init__(self, opened: Opened) -> None:
        super().__init__()
        self._opened = opened
        self._location = opened.plan.location
        self._is_leak = not self._location.is_new  # scratch may be dropped, as memory may
        layout = opened.plan.layout
        self.order: str = layout.order
        self.offset: int = layout.offset  # of the first element in the store
        self.mode: str = opened.plan.mode.name
        self._elements = Elements(opened.region, layout.offset - opened.region.start, layout.shape,
                                  layout.dtype, layout.order, opened.pager)
        self._swaps = RowSwaps(opened.pager)
        self._share_memory()
        opened.pager.arrays[id(self)] = self

    def _share_memory(self) -> None:
        elements = self._elements
        self._bind(elements.region, elements.lead, list(elements.shape), list(elements.strides),
                   elements.itemsize, buffer_format(elements.dtype))

    # -- what it is --

    @property
    def strides(self) -> tuple[int, ...]:
        return self._elements.strides

    @property
    def url(self) -> str:
        """What it was opened by, with an absolute path; with the password, if it has one."""
        return self._location.url

    @property
    def filename(self) -> Any:
        """The absolute path of its file or folder; None for scratch and memory. That of a
        ``memmap`` is a path object where it was opened by one, as numpy.memmap's is."""
        return registry.filename_of(self._mapped)

    @property
    def runtime(self) -> Any:
        """The runtime whose budget it shares."""
        return self._opened.runtime

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __repr__(self) -> str:
        return description.line_of(
            f"outcore.{type(self).__name__} {self._location.shown} {self.shape} {self.dtype} "
            f"mode={self.mode!r}", self._elements)

    def _repr_html_(self) -> str:
        if self._mapped.is_inherited or not self._mapped.is_open:
            return f"<code>{table.html.escape(repr(self))}</code>"
        return self.info._repr_html_() + table.html_bar(self.residency())

    # -- its memory --

    @property
    def _mapped(self) -> _core.Region:
        """As it is: a parent process may have mapped it."""
        return self._elements.region

    def _here(self) -> Elements:
        """Its elements in this process; mapped anew where a parent mapped them, if they may be."""
        region = self._elements.region
        if region.is_inherited and forks.may_remap(region, self._location, self.mode):
            forks.remap(self._elements, self._location, self._share_memory)
        return self._elements

    @property
    def _region(self) -> _core.Region:
        return self._here().region

    def _view(self) -> View:
        return self._here().view()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        view = self._view()
        interface = interface_of(view)
        interface["data"] = _core.Lease(self._region, self._elements.lead)  # keeps the array open
        interface["strides"] = None if self.order == "C" else view.strides
        return interface

    # -- its elements --

    @overload
    def __getitem__(self, key: slice | EllipsisType | None | str | list[str]) -> View: ...
    @overload
    def __getitem__(self, key: list[int] | list[bool] | np.ndarray[Any, Any]
                    ) -> np.ndarray[Any, np.dtype[Item]]: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any] | tuple[Any, ...]) -> View | Item: ...

    @plain_errors
    def __getitem__(self, key: Any) -> Any:
        found = items.get(self._here(), key)
        if type(key) is int or isinstance(key, np.integer):
            self._swaps.take(key, found)
        return found

    @plain_errors
    def __setitem__(self, key: Any, value: Any) -> None:
        items.put(self._here(), self._swaps, key, value)

    def __iter__(self) -> Iterator[Any]:
        for i in range(len(self)):
            yield self[i]

    @plain_errors
    def take(self, indices: Any, axis: int | None = None, out: Any = None,
             mode: Any = "raise") -> Any:
        """As ndarray.take; whole rows go as by ``gather``."""
        if axis == 0 and out is None and mode == "raise":
            index = np.asarray(indices)
            if index.ndim > 0 and index.dtype.kind in "iu":
                return self.gather(index)
        return self._view().take(indices, axis, out, mode)

    @plain_errors
    def gather(self, rows: Any) -> np.ndarray[Any, Any]:
        """A copy of these rows. Their pages are read many at a time, whatever their order.

        >>> import outcore
        >>> a = outcore.full((100, 2), 7)
        >>> a.gather([5, 90, 5]).shape
        (3, 2)
        """
        return items.gather(self._here(), rows)

    @plain_errors
    def read(self, key: Any = ...) -> np.ndarray[Any, Any]:
        """A copy of ``self[key]`` in ordinary memory. A failed read is an OSError, not a signal.

        There is no method ``copy``: dask.array.from_array would call it. ``a[...].copy()`` works.

        >>> import outcore
        >>> a = outcore.full(1000, 2.5)
        >>> a.read(slice(10, 12))
        array([2.5, 2.5])
        """
        return items.read(self._here(), key)

    def __copy__(self) -> np.ndarray[Any, Any]:
        return self.read()

    def __deepcopy__(self, memo: Any) -> np.ndarray[Any, Any]:
        return self.read()

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
        yield from items.chunks(self._here(), chunk, axis)

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """As ndarray.tofile, by copies of parts: it works with every delivery of faults."""
        if sep:
            self._view().tofile(fid, sep, format)
        else:
            items.save(self._here(), fid)

    # -- its store --

    @plain_errors
    def flush(self, range: Any = None, wait: bool = True, progress: Any = None) -> Any:
        """Writes what changed to the store. OSError if that fails; nothing is lost then.

        ``wait=False`` returns a Future at once. Success means that the store has every byte, as
        other programs that read the file see; ``sync`` also makes them durable.

        >>> import outcore
        >>> a = outcore.full(1000, 1.0)
        >>> a.flush()
        >>> a.flush(slice(0, 10), wait=False).result()
        """
        begin, size = self._here().range_of(range)
        if not wait:  # the array lives as long as its flush
            return ranges.in_background(
                lambda: ranges.flush_range(self._region, begin, size, progress))
        return ranges.flush_range(self._region, begin, size, progress)

    def sync(self) -> None:
        """``flush``, and the store is made durable (fdatasync): a power cut loses nothing."""
        self.flush()
        self._region.sync()

    def resize(self, shape: Any) -> None:
        """Gives it another shape, and the file the length that this needs.

        Growing works while views live if ``open(…, reserve='10GB')`` kept addresses for it; else,
        and for shrinking, it is mapped anew: BufferError while views live.

        >>> import outcore
        >>> a = outcore.open("scratch:", "w", (10, 4), float, reserve="1MiB")
        >>> a[9] = 9
        >>> a.resize((1000, 4)); float(a[9, 0]), float(a[999, 0])
        (9.0, 0.0)
        """
        try:
            resizing.resize(self._here(), self._opened.plan, shape)
        finally:
            self._share_memory()  # where it fails it may have been mapped anew, as it was

    # -- what is resident --

    @plain_errors
    def prefetch(self, key: Any = None, wait: bool = False, progress: Any = None) -> None:
        """Starts to bring a range in, or rows given as a list or array. A hint: what does not fit
        within the budget is dropped. With ``wait`` it is there on return, or OSError says why not.
        """
        elements = self._here()
        if isinstance(key, (list, np.ndarray)):
            return ranges.prefetch_rows(elements, np.asarray(key), wait)
        return ranges.prefetch(elements.region, *elements.range_of(key), wait, progress)

    def evict(self, key: Any = None) -> None:
        """Gives the memory of a range back now; what changed is written back first."""
        elements = self._here()
        ranges.evict(elements.region, *elements.range_of(key))

    def advise(self, advice: words.RangeAdvice, key: Any = None) -> None:
        """'random', 'sequential' or 'normal' for all of it; 'will-need', 'dont-need' or 'cold'
        for a range."""
        if not isinstance(advice, str):
            raise TypeError(f"advice {advice!r} is not a word: write one, as 'random'")
        elements = self._here()
        elements.region.advise(*elements.range_of(key), advice)

    @contextmanager
    def pin(self, key: Any = None) -> Iterator[Any]:
        """Keeps a range in memory for the time of a ``with`` block, and gives its view.

        OSError (ENOMEM) if the budget cannot hold it.

        >>> import outcore
        >>> a = outcore.full((1000, 4), 2.0)
        >>> with a.pin(slice(0, 10)) as part:
        ...     float(part.sum())
        80.0
        """
        elements = self._here()
        with ranges.pinned(elements.region, *elements.range_of(key)):
            part = elements.view()[... if key is None else key]
            yield part
            del part

    def discard(self, key: Any = None) -> None:
        """The whole pages of a range read zero from now on, and take no space where the store can.
        What of the range is no whole page is written with zeros."""
        elements = self._here()
        ranges.discard(elements.region, *elements.range_of(key))

    @property
    def resident_bytes(self) -> int:
        """How much of its store is in memory."""
        return self._region.metrics()["resident_bytes"]

    def residency(self, cells: int = _BAR_CELLS) -> list[float]:
        """For each of ``cells`` equal parts the share that is in memory; of large ones a sample."""
        cells = operator.index(cells)
        if cells < 0:
            raise ValueError(f"residency of {cells} parts: write a number of 0 or more")
        return self._region.residency(cells)

    def stats(self) -> dict[str, Any]:
        """Counters of the store's pages, by the names of docs/reference/metrics.md, with the
        runtime's budget and fault latency.

        >>> import outcore
        >>> a = outcore.full(1000, 1.0)
        >>> a.stats()["resident_bytes"] > 0
        True
        """
        return description.stats_of(self._here())

    @property
    def info(self) -> table.Table:
        """What there is to know, as a table for people."""
        names = [("Name", self._location.shown), ("Data type", str(self.dtype)),
                 ("Shape", str(self.shape)), ("Order", self.order),
                 ("Offset", f"{self.offset:,}"), ("Mode", self.mode)]
        return description.info_of(f"outcore.{type(self).__name__}", names, self._elements,
                                   self.stats(), self.residency())

    # -- by reference --

    def __reduce__(self) -> Any:
        reference = reference_to(self._opened.plan, self.shape, self._opened.pager.buffer)
        self._region.check("pickle")
        self.flush()
        return self._opened.reopen, (type(self), reference)

    def __dask_tokenize__(self) -> Any:
        return dask.token_of(self._here(), self._location, self.mode, self.offset)

    def to_dask(self, chunks: Any = "auto", name: str | None = None) -> Any:
        """A dask array over it. Nothing is copied: tasks open it by reference."""
        return dask.to_dask(self, chunks, name)

    # -- its end --

    @property
    def closed(self) -> bool:
        return not self._mapped.is_open

    def close(self) -> None:
        """Writes back what changed, and unmaps it. Closing twice does nothing.

        BufferError while views of it live: arrays that were sliced out of it, buffers, tensors.
        """
        if self.closed or self._mapped.is_inherited:
            return  # the parent closes its own
        self._mapped.unmap()
        if self._opened.plan.owns_runtime:
            self._opened.pager.close()

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
            if self._opened.plan.owns_runtime:
                self._opened.pager.close()

    def __del__(self) -> None:
        elements = getattr(self, "_elements", None)
        if elements is None or not elements.region.is_open or elements.region.is_inherited:
            return
        if self._is_leak:
            warnings.warn(f"unclosed outcore array {self._location.shown}", ResourceWarning,
                          source=self, stacklevel=2)
        if elements.region.exports == 0:
            elements.region.close_when_unused()  # nobody could catch what close() raises
            if self._opened.plan.owns_runtime:
                self._opened.pager.close()
