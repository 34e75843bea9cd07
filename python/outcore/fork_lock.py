"""ForkLock: a lock that is free in a forked child, whoever held it in the parent."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any


class ForkLock:
    """A ``with`` block of one thread at a time. What it guards must be whole at every moment, as a
    fork may come in the midst of another thread's block. ``is_reentrant``: of what the collector
    may call within a block, in the same thread, as it comes with any allocation."""

    def __init__(self, *, is_reentrant: bool = False) -> None:
        self._make = threading.RLock if is_reentrant else threading.Lock
        self._lock = self._make()
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: Any) -> None:
        self._lock.release()

    def _renew(self) -> None:
        self._lock = self._make()


_all: weakref.WeakSet[ForkLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_all):
        lock._renew()


os.register_at_fork(after_in_child=_renew_all)
