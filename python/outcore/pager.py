"""Pager: a memory budget with its options, and the regions that are mapped within it.

A Runtime shows one to its users. Arrays, views and containers need no more than this.
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import Any, Protocol, TypeGuard

from . import _core, registry, walk
from .fork_lock import ForkLock
from .location import Location
from .sizes import parse_budget, parse_bytes, parse_time

# Options that are times or sizes, and the field of each.
_TIMES = {"wait_max": "wait_ms_max", "checkpoint": "checkpoint_every_ms"}
_SIZES = {"budget_min": "budget_min_bytes", "budget_max": "budget_max_bytes"}


@functools.cache
def _offers_messages() -> bool:
    return any(name == "message faults" and there for name, there, _, _ in _core.system_facts())


def page_bytes_of(page: int | str | None) -> int | None:
    """``page`` as a number; None for 'auto'."""
    return None if page is None or page == "auto" else parse_bytes(page)


def _buffer_in(options: str) -> str | None:
    line = next(line for line in options.splitlines() if line.startswith("buffer = "))
    name = line.removeprefix("buffer = ").rpartition(" (")[0]
    return None if name == "none" else name


class Pager:
    """The core's runtime, made with the options that a Runtime names."""

    def __init__(self, budget: int | float | str | None = None, *,
                 page: int | str | None = None, policy: str | None = None,
                 delivery: str | None = None, readahead: int | str | None = None,
                 **options: Any) -> None:
        for name, field in _TIMES.items():
            if options.get(name) is not None:
                options[field] = parse_time(options.pop(name))
        for name, field in _SIZES.items():
            if options.get(name) is not None:
                options[field] = parse_bytes(options.pop(name))
        if isinstance(budget, str) and budget.strip() == "auto":
            options["adapts_budget"] = True
        elif budget is not None:
            options["budget_bytes"] = parse_budget(budget, _core.default_budget()[0])
        if readahead is not None:
            options["readahead_bytes"] = parse_bytes(readahead)
        options["page_bytes"] = page_bytes_of(page)
        self._asked = {**options, "policy": policy, "delivery": delivery}
        self.core = _core.Runtime(self._asked)
        self._inherited: _core.Runtime | None = None  # kept, as nothing of it can be ended here
        told = self.core.describe_options()
        is_decided = "delivery = auto (default)" not in told
        # The name of the buffer that it shares with other processes.
        self.buffer = _buffer_in(told)
        self._delivery = "messages" if not is_decided and _offers_messages() else None
        # By id, since arrays have no hash. Whoever closes the pager closes them.
        self.arrays: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        with _known_lock:
            _all[id(self)] = self
            watchers = list(_watchers)
        for watcher in watchers:
            watcher.pager_started(self)

    def renew(self) -> None:
        """Starts one as the parent's was made, in a forked child; or finds the one that a touch of
        the parent's memory has started."""
        with _renewals:  # once: two of its threads may use it for the first time
            if self.core.is_inherited:
                self._inherited, self.core = self.core, self.core.start_after_fork(self._asked)

    def map(self, location: Location, options: dict[str, Any],
            budget: tuple[Any, Any] = (None, None)) -> _core.Region:
        """A region. ``budget``: what this pager was made with, if for this region alone."""
        asked = options
        if options.get("delivery") is None:
            options = {**options, "delivery": self._delivery}
        region = self.core.map(location.raw, options)
        kept = tuple((k, asked.get(k)) for k in ("page_bytes", "advice", "delivery", "frames",
                                                 "on_error"))
        buffer = self.buffer if budget == (None, None) else None
        registry.add(region, registry.Source(location, location.identity(), options["access"], kept,
                                             budget, buffer))
        registry.set_block_bytes(region, self.block_bytes())
        return region

    def shorten(self, location: Location, size_bytes: int) -> None:
        """Cuts a file, unless others of the buffer have it: EBUSY, and nothing is cut."""
        self.core.shorten(location.raw, size_bytes)

    def block_bytes(self) -> int:
        """How much of an array is worked on at a time.

        The next block is brought in meanwhile, and both must be there at once: the policy keeps
        3 % of the budget for what is touched once.
        """
        return min(walk.BLOCK_BYTES_MAX, max(self.core.budget_bytes // 128, 1 << 16))

    @property
    def closed(self) -> bool:
        return not self.core.is_open

    @property
    def is_parents(self) -> bool:
        """Whether this forked child has it from its parent, and has renewed it or not."""
        return self._inherited is not None or self.core.is_inherited

    def close(self) -> None:
        """Closes its arrays, and ends its threads. BufferError if one of them has a live view."""
        if self.closed:
            return
        if not self.core.is_inherited:
            for ref in self.arrays.valuerefs():  # in one step, as other threads may open some
                array = ref()
                if array is not None:
                    array.close()
                    del array
            for watcher in list(_watchers):  # without a lock: it may be the collector that closes
                watcher.pager_ends(self)
        self.core.end()


class Watcher(Protocol):
    """Is told of the pagers that come and go, in the thread that starts or closes them; perhaps
    still while another thread is behind ``unwatch``."""

    def pager_started(self, pager: Pager) -> None: ...

    def pager_ends(self, pager: Pager) -> None: ...


_all: weakref.WeakValueDictionary[int, Pager] = weakref.WeakValueDictionary()
_watchers: list[Watcher] = []
_known_lock = ForkLock()  # guards both; not held while watchers are told
_renewals = ForkLock()


def watch(watcher: Watcher) -> list[Pager]:
    """From now on it is told, until ``unwatch``. The pagers of this process that are there; of one
    that starts meanwhile it may be told, too."""
    with _known_lock:
        _watchers.append(watcher)
        pagers = [ref() for ref in _all.valuerefs()]
    return [pager for pager in pagers
            if pager is not None and not pager.closed and not pager.core.is_inherited]


def unwatch(watcher: Watcher) -> None:
    with _known_lock:
        if watcher in _watchers:
            _watchers.remove(watcher)


_default: Pager | None = None
_default_lock = ForkLock()


def _is_usable(pager: Pager | None) -> TypeGuard[Pager]:
    return pager is not None and not pager.closed and not pager.core.is_inherited


def _renew_shared(pager: Pager | None) -> None:
    """Of a parent in a buffer, in a forked child: with a second one beside it, what this process
    opens and what it inherits would be of two runtimes, which cannot share a file."""
    if pager is not None and not pager.closed and pager.buffer is not None:
        pager.renew()


def default_pager() -> Pager:
    """That of all arrays that name no other runtime. It starts with the first of them."""
    global _default
    with _default_lock:
        _renew_shared(_default)
        if not _is_usable(_default):
            made = Pager()
            if _is_usable(_default):  # a handler of a signal was faster, in this thread
                made.close()
            else:
                _default = made
        return _default


_in_buffers: dict[str, Pager] = {}


def pager_in(buffer: str) -> Pager:
    """One in this buffer, for what comes by reference from other processes that share it. It stays
    until this process ends, as the default one does."""
    if os.environ.get("OUTCORE_BUFFER") == buffer:
        default_pager()
    with _default_lock:
        with _known_lock:
            known = [ref() for ref in _all.valuerefs()]
        theirs = [pager for pager in known if pager is not None and pager.buffer == buffer
                  and pager.is_parents]
        for pager in (_default, _in_buffers.get(buffer), *theirs):
            if pager is not None and pager.buffer == buffer:
                _renew_shared(pager)
                if _is_usable(pager):
                    _in_buffers[buffer] = pager
                    return pager
        _in_buffers[buffer] = Pager(buffer=buffer)
        return _in_buffers[buffer]


def set_default_pager(pager: Pager) -> None:
    global _default
    with _default_lock:
        _default = pager
