"""Runtime: a memory budget, and the arrays that share it."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from . import _core, registry, table, walk, words
from .fork_lock import ForkLock
from .location import Location, scratch_url
from .sizes import format_bytes, parse_budget, parse_bytes, parse_time

if TYPE_CHECKING:
    from .array import Array


# Options that are times, and the field of each.
_TIMES = {"wait_max": "wait_ms_max", "checkpoint": "checkpoint_every_ms"}


@functools.cache
def _offers_messages() -> bool:
    return any(name == "message faults" and there for name, there, _, _ in _core.system_facts())


def page_bytes_of(page: int | str | None) -> int | None:
    """``page`` as a number; None for 'auto'."""
    return None if page is None or page == "auto" else parse_bytes(page)


class Runtime:
    """A memory budget of its own, and the arrays that share it.

    ``budget`` is bytes, text ('4GB') or a percentage of what is available ('25%'); ``policy``,
    ``page`` and what else ``options`` names are told in docs/reference/options.md, by the names of
    the column "config file"; times are text ('30s') or milliseconds. What is not said here is taken
    from the environment, the config file, or the default.

    By default regions get their pages by messages where the system offers that, so that NumPy may
    hand arrays to system calls (``ndarray.tofile``); ``delivery='in-thread'`` is faster where much
    is touched page by page.

    >>> with Runtime(budget="64MiB") as runtime:
    ...     a = runtime.zeros((1000, 1000))
    ...     a[0] = 1
    ...     float(a.sum())
    1000.0
    """

    def __init__(self, budget: int | float | str | None = None, *,
                 page: int | str | None = None, policy: str | None = None,
                 delivery: str | None = None, readahead: int | str | None = None,
                 **options: Any) -> None:
        for name, field in _TIMES.items():
            if options.get(name) is not None:
                options[field] = parse_time(options.pop(name))
        if budget is not None:
            options["budget_bytes"] = parse_budget(budget, _core.default_budget()[0])
        if readahead is not None:
            options["readahead_bytes"] = parse_bytes(readahead)
        options["page_bytes"] = page_bytes_of(page)
        self._asked = {**options, "policy": policy, "delivery": delivery}
        self._core = _core.Runtime(self._asked)
        self._inherited: _core.Runtime | None = None  # kept, as nothing of it can be ended here
        is_decided = "delivery = auto (default)" not in self._core.describe_options()
        self._delivery = "messages" if not is_decided and _offers_messages() else None
        self._arrays: weakref.WeakValueDictionary[int, Array[Any]] = weakref.WeakValueDictionary()

    # -- arrays --

    def open(self, url: Any, mode: words.Mode = "r", shape: Any = None, dtype: Any = None,
             order: words.Order | None = None, offset: int = 0, **options: Any) -> Array[Any]:
        """As ``outcore.open``, within this runtime's budget."""
        from .creation import open as open_array
        return open_array(url, mode, shape, dtype, order, offset, runtime=self, **options)

    def empty(self, shape: Any, dtype: Any = float, order: words.Order = "C", *,
              scratch_dir: Any = None, **options: Any) -> Array[Any]:
        """As ``outcore.empty``, within this runtime's budget."""
        return self.open(scratch_url(scratch_dir), "w", shape, dtype, order, **options)

    zeros = empty  # scratch reads zero

    def full(self, shape: Any, fill_value: Any, dtype: Any = None, order: words.Order = "C",
             **options: Any) -> Array[Any]:
        """As ``outcore.full``, within this runtime's budget."""
        from .creation import full
        return full(shape, fill_value, dtype, order, runtime=self, **options)

    def _renew(self) -> None:
        """Starts one as the parent's was made, in a forked child."""
        if self._core.is_inherited:
            self._inherited, self._core = self._core, _core.Runtime(self._asked)

    def _map(self, location: Location, options: dict[str, Any],
             budget: tuple[Any, Any] = (None, None)) -> _core.Region:
        """A region. ``budget``: what this runtime was made with, if for this region alone."""
        asked = options
        if options.get("delivery") is None:
            options = {**options, "delivery": self._delivery}
        region = self._core.map(location.raw, options)
        kept = tuple((k, asked.get(k)) for k in ("page_bytes", "advice", "delivery", "frames",
                                                 "on_error"))
        registry.add(region, registry.Source(location, location.identity(), options["access"], kept,
                                             budget))
        return region

    def _block_bytes(self) -> int:
        """How much of an array is worked on at a time.

        The next block is brought in meanwhile, and both must be there at once: the policy keeps
        3 % of the budget for what is touched once.
        """
        return min(walk.BLOCK_BYTES_MAX, max(self.budget // 128, 1 << 16))

    # -- the budget, and what happened --

    @property
    def budget(self) -> int:
        """Bytes of memory for all arrays of this runtime together. May be set, to text, too."""
        return self._core.budget_bytes

    @budget.setter
    def budget(self, budget: int | float | str) -> None:
        self._core.resize_budget(parse_budget(budget, _core.default_budget()[0]))

    @property
    def options(self) -> dict[str, tuple[str, str]]:
        """Each option's value, and where it was set."""
        lines = (line.partition(" = ") for line in self._core.describe_options().splitlines())
        return {name: (value.rpartition(" (")[0], value.rpartition(" (")[2][:-1])
                for name, _, value in lines if name}

    def stats(self) -> dict[str, Any]:
        """Counters and gauges by the names of docs/reference/metrics.md, and a list of regions."""
        return self._core.metrics()

    @property
    def info(self) -> table.Table:
        """What there is to know, as a table for people."""
        s = self.stats()
        return table.Table("Runtime", [
            ("Budget", format_bytes(s["budget_bytes"])),
            ("In use", format_bytes(s["used_bytes"])),
            ("In use at most", format_bytes(s["used_bytes_max"])),
            ("Arrays", str(len(s["regions"]))),
            *table.traffic(s)])

    # -- its end --

    @property
    def closed(self) -> bool:
        return not self._core.is_open

    def close(self) -> None:
        """Closes its arrays, and ends its threads. BufferError if one of them has a live view."""
        if self.closed:
            return
        if not self._core.is_inherited:
            for array in list(self._arrays.values()):
                array.close()
        self._core.end()

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<outcore.Runtime, closed>"
        return f"<outcore.Runtime budget={format_bytes(self.budget)}>"


_default: Runtime | None = None
_default_lock = ForkLock()


def default_runtime() -> Runtime:
    """The runtime of all arrays that name no other. It starts with the first of them.

    Its budget is the option ``budget`` (OUTCORE_BUDGET=4G), else half of the memory available.

    >>> default_runtime() is default_runtime()
    True
    """
    global _default
    with _default_lock:
        if _default is None or _default.closed or _default._core.is_inherited:
            _default = Runtime()
        return _default


def set_default_runtime(runtime: Runtime) -> None:
    """Makes ``runtime`` the one of all arrays that are opened from now on and name no other."""
    global _default
    with _default_lock:
        _default = runtime
