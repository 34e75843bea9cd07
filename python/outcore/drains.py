"""Drains: finished arrays of one container travel to another, in the background."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import _core
from .location import Location, locate
from .pager import default_pager
from .runtime import Runtime
from .sizes import format_bytes, parse_bytes


@dataclass(frozen=True)
class DrainProgress:
    """How far a drain is."""

    arrays: int
    arrays_done: int  # those that were there already are done
    bytes: int  # of elements
    bytes_done: int
    array: str  # that is on its way, or was the last; '': none yet


class ArraysDrain:
    """Arrays on their way to another container, as ``drain`` starts it: docs/guides/arrays.md.

    A ``with`` block waits for it at its end; one that an exception leaves cancels it. It is
    cancelled, too, when it is dropped, or when the interpreter ends. What had been finished stays,
    and the next drain goes on there. Any thread may call anything.
    """

    def __init__(self, core: _core.ArraysDrain, source: Location, target: Location) -> None:
        self._core = core
        self.source, self.target = source.url, target.url
        self._end = weakref.finalize(self, core.end)

    def wait(self, timeout: float | None = None) -> bool:
        """True: everything is there, durably, and was read again. False: it goes on after
        ``timeout`` seconds. OSError: what ended it, of everybody who waits: with the errno
        ECANCELED; EIO, what was read again is not what was written; EEXIST, another array has the
        name there; EBUSY, everything is there, but somebody writes the container, so nothing was
        removed from it; and those of the stores. Ctrl-C ends the wait, not the drain."""
        seconds = math.inf if timeout is None else float(timeout)
        if math.isnan(seconds):
            raise ValueError("timeout is not a number: write seconds, or None for no limit")
        return self._core.wait(seconds)

    @property
    def progress(self) -> DrainProgress:
        return DrainProgress(*self._core.progress())

    @property
    def has_ended(self) -> bool:
        """Well or not: ``wait`` returns, or raises, at once."""
        return self._core.has_ended

    def cancel(self) -> None:
        """Soon; what had been finished stays."""
        self._core.cancel()

    def __enter__(self) -> ArraysDrain:
        return self

    def __exit__(self, kind: Any = None, *raised: object) -> None:
        if kind is not None:
            self._core.end()
            return
        try:
            self.wait()
        except BaseException:  # Ctrl-C, too
            self._core.end()
            raise

    def __repr__(self) -> str:
        what = f"<outcore.ArraysDrain from '{self.source}' to '{self.target}'"
        try:
            end, now = ", ended" if self.has_ended else "", self.progress
        except PermissionError:
            return f"{what}, of the parent of this process>"
        return (f"{what}, {now.arrays_done} of {now.arrays} arrays, "
                f"{format_bytes(now.bytes_done)} of {format_bytes(now.bytes)}{end}>")


def _rate_of(rate: int | float | str | None) -> int:
    if rate is None:
        return 0
    text = rate.strip() if isinstance(rate, str) else rate
    size = parse_bytes(text[:-2] if isinstance(text, str) and text.endswith("/s") else text)
    if size == 0:
        raise ValueError(f"rate={rate!r}: nothing would travel: write bytes per second, as '200M', "
                         "or None for as fast as it goes")
    return min(size, (1 << 64) - 1)


def drain(source: Any, target: Any, names: Iterable[str] | str | None = None, *,
          rate: int | float | str | None = None, remove: bool = False,
          runtime: Runtime | None = None) -> ArraysDrain:
    """Copies finished arrays of a container to another, in the background, on any store.

    ``source`` and ``target`` are paths or URLs; the target is made if there is none. ``names`` are
    the arrays, all by default; ``rate`` bytes per second at most, also as text. With ``remove``
    they are removed from the source when all are there, and whoever reads it finds them all the
    same. ``runtime`` is for stores that are not files, by default the default one.

    >>> import numpy, tempfile, outcore
    >>> folder = tempfile.mkdtemp()
    >>> with outcore.Arrays(f"{folder}/run.oca", "w") as out:
    ...     out["t"] = numpy.arange(6.0)
    >>> with outcore.drain(f"{folder}/run.oca", f"{folder}/far.oca", rate="200M") as going:
    ...     pass                                            # the program goes on
    >>> going.progress.arrays_done, outcore.Arrays(f"{folder}/far.oca")["t"][5]
    (1, np.float64(5.0))
    """
    here, there = locate(source), locate(target)
    if here.url == there.url or (here.identity() is not None
                                 and here.identity() == there.identity()):
        raise ValueError(f"drain {here.shown} to {there.shown}: both are one container")
    chosen = [names] if isinstance(names, str) else None if names is None else list(names)
    if chosen is not None and not chosen:
        raise ValueError("names is empty: name arrays, or leave it out for all of them")
    pager = None if runtime is None else runtime._pager
    if pager is None and not {here.scheme, there.scheme} <= {"file", "pmem"}:
        pager = default_pager()
    core = _core.ArraysDrain(here.raw, there.raw, chosen or [], _rate_of(rate), bool(remove),
                             None if pager is None else pager.core)
    return ArraysDrain(core, here, there)
