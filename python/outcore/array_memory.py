"""ArrayMemory: what an Array lets its user say about memory, store and budget."""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, table, walk, words
from .plain_errors import plain_errors
from .progress import Progress
from .sizes import format_bytes

_FLUSH_BYTES = 32 << 20  # Ctrl-C is heard that often
_BAR_CELLS = 48


class ArrayMemory:
    """Flushing, prefetching, pinning, growing, and what is resident.

    A ``range`` or ``key`` is anything that indexes the array: None for all of it, a slice, a
    tuple, a number. It is widened to whole pages, and to one run of bytes.
    """

    _mapped: _core.Region  # _region is the same, but of this process

    if TYPE_CHECKING:
        @property
        def _region(self) -> _core.Region: ...

    def _range_of(self, key: Any) -> tuple[int, int]:
        self._region.check("use")
        if key is None:
            return self._lead, self.nbytes  # type: ignore[attr-defined]
        if isinstance(key, range):
            key = slice(key.start, key.stop, key.step)
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, (list, np.ndarray)) for k in keys):
            raise IndexError("a list of rows is no range: give a slice")
        part = self._view()[keys if ... in keys else (*keys, ...)]  # type: ignore[attr-defined]
        return walk.bounds_in(self._region, part)

    # -- the store --

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
        begin, size = self._range_of(range)
        if not wait:
            return _in_background(lambda: self._flush_range(begin, size, progress))
        return self._flush_range(begin, size, progress)

    def _flush_range(self, begin: int, size: int, progress: Any) -> None:
        with Progress(progress, size, "flush") as report:
            for at, piece in walk.slices(begin, size, _FLUSH_BYTES):
                self._region.flush(at, piece)
                report(piece)

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
        from .resizing import resize
        resize(self, shape)  # type: ignore[arg-type]

    # -- memory --

    @plain_errors
    def prefetch(self, key: Any = None, wait: bool = False, progress: Any = None) -> None:
        """Starts to bring a range in, or rows given as a list or array. A hint: what does not fit
        within the budget is dropped. With ``wait`` it is there on return, or OSError says why not.
        """
        if isinstance(key, (list, np.ndarray)):
            self._prefetch_rows(np.asarray(key), wait)
            return
        begin, size = self._range_of(key)
        with Progress(progress, size, "prefetch") as report:
            for at, piece in walk.slices(begin, size):
                (self._region.prefault if wait else self._region.prefetch)(at, piece)
                report(piece)

    def _prefetch_rows(self, index: np.ndarray[Any, Any], wait: bool) -> None:
        view = self._view()  # type: ignore[attr-defined]
        index = np.flatnonzero(index) if index.dtype == np.bool_ else index.ravel()
        if index.size == 0 or view.size == 0:
            return
        index = index.astype(np.int64)
        if int(index.min()) < -len(view) or int(index.max()) >= len(view):
            raise IndexError(f"a row is out of bounds for axis 0 with size {len(view)}")
        begins = index % len(view) * abs(view.strides[0]) + self._lead  # type: ignore[attr-defined]
        _, row_bytes = walk.bounds_in(self._region, view[0:1])
        starts = walk.page_starts(self._region, begins, row_bytes)
        if wait:
            self._region.bring(starts, walk.BRING_THREADS)
        else:
            self._region.prefetch_list(starts)

    def evict(self, key: Any = None) -> None:
        """Gives the memory of a range back now; what changed is written back first."""
        begin, size = self._range_of(key)
        for at, piece in walk.slices(begin, size, _FLUSH_BYTES):
            self._region.advise(at, piece, "dont-need")

    def advise(self, advice: words.RangeAdvice, key: Any = None) -> None:
        """'random', 'sequential' or 'normal' for all of it; 'will-need', 'dont-need' or 'cold'
        for a range."""
        if not isinstance(advice, str):
            raise TypeError(f"advice {advice!r} is none: write a word, as 'random'")
        begin, size = self._range_of(key)
        self._region.advise(begin, size, advice)

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
        begin, size = self._range_of(key)
        pinned: list[tuple[int, int]] = []
        try:
            for at, piece in walk.slices(begin, size):
                self._region.pin(at, piece)
                pinned.append((at, piece))
            view = self._view()  # type: ignore[attr-defined]
            part = view[... if key is None else key]
            del view
            yield part
            del part
        finally:
            for at, piece in pinned:
                self._region.unpin(at, piece)

    def discard(self, key: Any = None) -> None:
        """The whole pages of a range read zero from now on, and take no space where the store can.
        What of the range is no whole page is written with zeros."""
        begin, size = self._range_of(key)
        end = begin + size
        first = min(-(-begin // 4096) * 4096, end)
        last = max(end // 4096 * 4096, first)
        self._region.write(begin, bytes(first - begin))
        self._region.discard(first, last - first)
        self._region.write(last, bytes(end - last))

    # -- what is --

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
        found = self._region.metrics()
        of_runtime = self._runtime.stats()  # type: ignore[attr-defined]
        for name in ("budget_bytes", "used_bytes", "used_bytes_max", "fault_p50_ns",
                     "fault_p99_ns"):
            found[name] = of_runtime[name]
        return found

    @property
    def info(self) -> table.Table:
        """What there is to know, as a table for people."""
        a: Any = self
        s = self.stats()
        resident = s["resident_bytes"] / s["size_bytes"] if s["size_bytes"] else 0
        return table.Table(f"outcore.{type(self).__name__}", [
            ("Name", a.url),
            ("Data type", str(a.dtype)),
            ("Shape", str(a.shape)),
            ("Order", a.order),
            ("Offset", f"{a.offset:,}"),
            ("Mode", a.mode),
            ("No. bytes", f"{a.nbytes:,} ({format_bytes(a.nbytes)})"),
            ("Resident", f"{format_bytes(s['resident_bytes'])} ({min(resident, 1):.0%})"),
            ("", table.bar(self.residency())),
            ("Page", format_bytes(s["page_bytes"])),
            ("Delivery, frames", f"{s['delivery']}, {s['frames']}"),
            ("Budget", f"{format_bytes(s['budget_bytes'])}, "
                       f"{format_bytes(s['used_bytes'])} in use"),
            *table.traffic(s),
            ("Fault p50, p99",
             f"{s['fault_p50_ns'] / 1e3:.0f} µs, {s['fault_p99_ns'] / 1e3:.0f} µs"),
            ("Degraded", "yes: a write-back failed; flush says why" if s["is_degraded"] else "no"),
        ])

    def __repr__(self) -> str:
        a: Any = self
        head = f"<outcore.{type(self).__name__} {a.url} {a.shape} {a.dtype} mode={a.mode!r}"
        if self._mapped.is_inherited:
            return f"{head}, of the parent process>"
        if not self._mapped.is_open:
            return f"{head}, closed>"
        share = min(self.resident_bytes / self._region.size_bytes, 1) if a.nbytes else 0
        return f"{head}, {format_bytes(a.nbytes)}, {share:.0%} resident>"

    def _repr_html_(self) -> str:
        if self._mapped.is_inherited or not self._mapped.is_open:
            return f"<code>{table.html.escape(repr(self))}</code>"
        return self.info._repr_html_() + table.html_bar(self.residency())


def _in_background(work: Any) -> Future[None]:
    """Its own thread, which the interpreter waits for at its end."""
    future: Future[None] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    future.set_running_or_notify_cancel()
    threading.Thread(target=run, name="outcore-flush").start()
    return future
