"""Container: what the arrays of one container share, and how to open it again elsewhere."""

from __future__ import annotations

import os
import pickle
import uuid
import weakref
from dataclasses import dataclass, field
from typing import Any

from . import _core
from .fork_lock import ForkLock
from .location import Location, locate
from .pager import Pager, default_pager


@dataclass(eq=False)
class Container:
    """A container that is open in this process."""

    core: _core.Arrays
    location: Location
    mode: str
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def stamp(self) -> tuple[Any, ...]:
        """Equal for the same data: of a file that is only read here. Others are of their own."""
        if self.mode == "r" and self.location.path is not None:
            try:
                about = os.stat(self.location.path)
            except OSError:  # it has another name by now
                return self.location.url, self.token
            return (self.location.url, about.st_dev, about.st_ino, about.st_size,
                    about.st_mtime_ns)
        return self.location.url, self.token

    def check_pickle(self) -> None:
        if self.mode != "r":
            raise pickle.PicklingError(
                f"{self.location.shown} is being written, by this process: what goes to other "
                "processes has to be open for reading, outcore.Arrays(path)")


def open_core(location: Location, mode: str, rank: int = 0, size: int = 1, any_failed: Any = None,
              pager: Pager | None = None) -> _core.Arrays:
    """Views, and all of stores that are not files, are pages of a runtime."""
    if pager is None and (mode == "r" or location.scheme not in ("file", "pmem")):
        pager = default_pager()
    return _core.Arrays(location.raw, mode, rank, size, any_failed,
                        None if pager is None else pager.core)


# Arrays that come back in one process share what is open.
_reopened: weakref.WeakValueDictionary[Any, Container] = weakref.WeakValueDictionary()
_reopened_lock = ForkLock()


def reopen(url: str, stamp: tuple[Any, ...]) -> Container:
    """A container as it was when an array of it was pickled."""
    key = (_core.fork_count(), stamp)
    with _reopened_lock:
        container = _reopened.get(key)
        if container is None:
            location = locate(url)
            container = _reopened[key] = Container(open_core(location, "r"), location, "r")
        return container
