"""Forks: an array that a forked child inherits, mapped anew there.

A child does not inherit its parent's pages. An array that is only read needs no more than its file
to be the same, and one whose pages are in a buffer finds them there, written or not: so these map
it again when they are first used. All others are refused.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from . import _core, registry
from .elements import Elements
from .fork_lock import ForkLock
from .location import Location

_lock = ForkLock()


def may_remap(region: _core.Region, location: Location, mode: str) -> bool:
    return (mode == "r" or region.is_shared) and not location.is_new and region.is_open


def remap(elements: Elements, location: Location, share: Callable[[], None]) -> None:
    """Gives the elements a region of this process, and calls ``share``. OSError (ESTALE) if the
    file is another by now."""
    with _lock:
        inherited = elements.region
        if not inherited.is_inherited:  # another thread was first
            return
        source = registry.source_of(inherited)
        if source.identity is not None and location.identity() != source.identity:
            raise OSError(errno.ESTALE, "the parent process has it open, and the file of this name "
                          "is another by now: open that one here", registry.filename_of(inherited))
        elements.pager.renew()
        options = {"access": source.access, "offset": inherited.start,
                   "size_bytes": inherited.size_bytes, **dict(source.options)}
        elements.region = elements.pager.map(location, options, source.budget)
        share()
