"""Ranges: flushing, prefetching, pinning and discarding bytes of a region, piece by piece."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import _core, walk
from .elements import Elements
from .progress import Progress

_FLUSH_BYTES = 32 << 20  # Ctrl-C is heard that often
_SYSTEM_PAGE = 4096


def flush_range(region: _core.Region, begin: int, size: int, progress: Any) -> None:
    with Progress(progress, size, "flush") as report:
        for at, piece in walk.slices(begin, size, _FLUSH_BYTES):
            region.flush(at, piece)
            report(piece)


def in_background(work: Callable[[], Any]) -> Future[None]:
    """In its own thread, which the interpreter waits for at its end."""
    future: Future[None] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    future.set_running_or_notify_cancel()
    threading.Thread(target=run, name="outcore-flush").start()
    return future


def prefetch(region: _core.Region, begin: int, size: int, wait: bool, progress: Any) -> None:
    with Progress(progress, size, "prefetch") as report:
        for at, piece in walk.slices(begin, size):
            (region.prefault if wait else region.prefetch)(at, piece)
            report(piece)


def prefetch_rows(elements: Elements, index: np.ndarray[Any, Any], wait: bool) -> None:
    view, region = elements.view().view(np.ndarray), elements.region
    index = np.flatnonzero(index) if index.dtype == np.bool_ else index.ravel()
    if index.size == 0 or view.size == 0:
        return
    index = index.astype(np.int64)
    if int(index.min()) < -len(view) or int(index.max()) >= len(view):
        raise IndexError(f"a row is out of bounds for axis 0 with size {len(view)}")
    rows = np.unique(index % len(view))

    def ask(begins: np.ndarray[Any, Any], size: int) -> None:
        starts = walk.page_starts(region, begins, size)
        if wait:
            region.bring(starts, walk.BRING_THREADS)
        else:
            region.prefetch_list(starts)

    if elements.is_by_columns:
        for part in walk.columns_of(view, region, rows, elements.block_bytes):
            for begin, size in part.ranges:
                prefetch(region, begin, size, wait, None)
            if part.begins.size:
                ask(part.begins, view.itemsize)
        return
    row_bytes = view.nbytes // len(view)
    if row_bytes > walk.BLOCK_BYTES_MAX:
        for row in rows.tolist():
            prefetch(region, elements.lead + row * row_bytes, row_bytes, wait, None)
        return
    step = walk.BLOCK_BYTES_MAX // row_bytes
    for at in range(0, len(rows), step):
        ask(rows[at:at + step] * row_bytes + elements.lead, row_bytes)


def evict(region: _core.Region, begin: int, size: int) -> None:
    for at, piece in walk.slices(begin, size, _FLUSH_BYTES):
        region.advise(at, piece, "dont-need")


@contextmanager
def pinned(region: _core.Region, begin: int, size: int) -> Iterator[None]:
    """All of it, or OSError."""
    done: list[tuple[int, int]] = []
    try:
        for at, piece in walk.slices(begin, size):
            region.pin(at, piece)
            done.append((at, piece))
        yield
    finally:
        for at, piece in done:
            region.unpin(at, piece)


def discard(region: _core.Region, begin: int, size: int) -> None:
    """Whole pages are discarded, and what is left of the range is written with zeros."""
    end = begin + size
    first = min(-(-begin // _SYSTEM_PAGE) * _SYSTEM_PAGE, end)
    last = max(end // _SYSTEM_PAGE * _SYSTEM_PAGE, first)
    region.write(begin, bytes(first - begin))
    if last > first:
        region.discard(first, last - first)
    region.write(last, bytes(end - last))
