"""ForkLock: a lock that is free in a forked child, whoever held it in the parent."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any


class ForkLock:
    """A ``with`` block of one thread at a time. What it guards must be whole at every moment, as a
    fork may come in the midst of another thread's block. The collector and handlers of signals may
    enter it again in the same thread, between any two steps of a block."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: Any) -> None:
        self._lock.release()

    def _renew(self) -> None:
        self._lock = threading.RLock()


_all: weakref.WeakSet[ForkLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_all):
        lock._renew()


os.register_at_fork(after_in_child=_renew_all)
