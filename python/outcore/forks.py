"""Forks: an array that a forked child inherits, mapped anew there.

A child does not inherit its parent's pages. An array that is only read needs no more than its file
to be the same, so it maps it again when it is first used; all others are refused.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from . import _core, registry
from .fork_lock import ForkLock
from .view import set_block_bytes

if TYPE_CHECKING:
    from .array import Array

_lock = ForkLock()


def may_remap(array: Array[Any]) -> bool:
    return array.mode == "r" and not array._location.is_new and array._mapped.is_open


def remap(array: Array[Any]) -> _core.Region:
    """The array's region, of this process. OSError (ESTALE) if its file is another by now."""
    with _lock:
        inherited = array._mapped
        if not inherited.is_inherited:  # another thread was first
            return inherited
        source = registry.source_of(inherited)
        if source.identity is not None and array._location.identity() != source.identity:
            raise OSError(errno.ESTALE, "the parent process has it open, and the file of this name "
                          "is another by now: open that one here", array.filename)
        array._runtime._renew()
        options = {"access": source.access, "offset": inherited.start,
                   "size_bytes": inherited.size_bytes, **dict(source.options)}
        region = array._runtime._map(array._location, options, source.budget)
        set_block_bytes(region, array._runtime._block_bytes())
        array._mapped = region
        array._share_memory()
        return region
