"""Runtime: a memory budget, and the arrays that share it."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core, table, words
from .array import Array
from .fork_lock import ForkLock
from .location import scratch_url
from .opening import Opened, make_plan, map_plan
from .pager import Pager, default_pager, pager_in, set_default_pager
from .sizes import format_bytes, parse_budget


class Runtime:
    """A memory budget of its own, and the arrays that share it.

    ``budget`` is bytes, text ('4GB') or a percentage of what is available ('25%'), or 'auto': then
    it follows what others leave, between ``budget_min`` and ``budget_max``. ``policy``, ``page``
    and what else ``options`` names are told in docs/reference/options.md, by the names of the
    column "config file"; times are text ('30s') or milliseconds. What is not said here is taken
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
        self._pager = Pager(budget, page=page, policy=policy, delivery=delivery,
                            readahead=readahead, **options)

    @classmethod
    def _of(cls, pager: Pager) -> Runtime:
        made = cls.__new__(cls)
        made._pager = pager
        return made

    # -- arrays --

    def open(self, url: Any, mode: words.Mode = "r", shape: Any = None, dtype: Any = None,
             order: words.Order | None = None, offset: int = 0, **options: Any) -> Array[Any]:
        """As ``outcore.open``, within this runtime's budget."""
        return Array(open_plan(url, mode, shape, dtype, order, offset, runtime=self, **options))

    def empty(self, shape: Any, dtype: Any = float, order: words.Order = "C", *,
              scratch_dir: Any = None, **options: Any) -> Array[Any]:
        """As ``outcore.empty``, within this runtime's budget."""
        return self.open(scratch_url(scratch_dir), "w", shape, dtype, order, **options)

    zeros = empty  # scratch reads zero

    def full(self, shape: Any, fill_value: Any, dtype: Any = None, order: words.Order = "C",
             **options: Any) -> Array[Any]:
        """As ``outcore.full``, within this runtime's budget."""
        array = self.empty(shape, np.asarray(fill_value).dtype if dtype is None else dtype, order,
                           **options)
        array[...] = fill_value
        return array

    # -- the budget, and what happened --

    @property
    def budget(self) -> int:
        """Bytes of memory for all arrays of this runtime together. May be set, to text, too; from
        then on it stays so, if it was 'auto', too."""
        return self._pager.core.budget_bytes

    @budget.setter
    def budget(self, budget: int | float | str) -> None:
        self._pager.core.resize_budget(parse_budget(budget, _core.default_budget()[0]))

    @property
    def options(self) -> dict[str, tuple[str, str]]:
        """Each option's value, and where it was set."""
        lines = (line.partition(" = ") for line in self._pager.core.describe_options().splitlines())
        return {name: (value.rpartition(" (")[0], value.rpartition(" (")[2][:-1])
                for name, _, value in lines if name}

    def stats(self) -> dict[str, Any]:
        """Counters and gauges by the names of docs/reference/metrics.md, and a list of regions."""
        return self._pager.core.metrics()

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
        return self._pager.closed

    def close(self) -> None:
        """Closes its arrays, and ends its threads. BufferError if one of them has a live view."""
        self._pager.close()

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<outcore.Runtime, closed>"
        return f"<outcore.Runtime budget={format_bytes(self.budget)}>"


def open_plan(*arguments: Any, **options: Any) -> Opened:
    """Opens what these arguments of ``make_plan`` name: within the runtime that they name, one of
    its own, or the default one."""
    plan = make_plan(*arguments, **options)
    if plan.owns_runtime:
        runtime = Runtime(plan.options["budget"], policy=plan.options["policy"])
    else:
        runtime = default_runtime() if plan.runtime is None else plan.runtime
    try:
        region = map_plan(plan, runtime._pager)
    except BaseException:
        if plan.owns_runtime:
            runtime.close()
        raise
    return Opened(plan, region, runtime._pager, runtime, _reopen)


def _reopen(kind: type[Array[Any]], reference: tuple[Any, ...]) -> Array[Any]:
    """An Array as it was when it was pickled; 'w' comes back as 'r+'."""
    url, mode, shape, dtype, order, offset, options, buffer = reference
    if buffer is not None:
        options = {**options, "runtime": Runtime._of(pager_in(buffer))}
    array = kind.__new__(kind)
    Array.__init__(array, open_plan(url, mode, shape, dtype, order, offset or 0, **options))
    return array


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
        pager = default_pager()
        if _default is None or _default._pager is not pager:
            _default = Runtime._of(pager)
        return _default


def set_default_runtime(runtime: Runtime) -> None:
    """Makes ``runtime`` the one of all arrays that are opened from now on and name no other."""
    global _default
    if not isinstance(runtime, Runtime):
        raise TypeError(f"set_default_runtime: {runtime!r} is not an outcore.Runtime: "
                        "make one first, as in outcore.Runtime(budget='4GB')")
    with _default_lock:
        _default = runtime
        set_default_pager(runtime._pager)
