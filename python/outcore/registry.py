"""Registry: the regions that are open in this process, and what each was opened by."""

from __future__ import annotations

import atexit
import weakref
from dataclasses import dataclass
from typing import Any

from . import _core
from .location import Location


@dataclass(frozen=True)
class Source:
    """What a region was opened by, so that another process can open the same."""

    location: Location
    identity: tuple[int, int] | None
    access: str
    options: tuple[tuple[str, Any], ...]  # page, delivery, …: as they were asked for
    budget: tuple[Any, Any]  # budget and policy of a runtime of its own, or (None, None)
    buffer: str | None  # that its runtime shares with other processes


_sources: weakref.WeakKeyDictionary[_core.Region, Source] = weakref.WeakKeyDictionary()


def add(region: _core.Region, source: Source) -> None:
    _sources[region] = source


def source_of(region: _core.Region) -> Source:
    return _sources[region]


_filenames: weakref.WeakKeyDictionary[_core.Region, Any] = weakref.WeakKeyDictionary()


def name(region: _core.Region, filename: Any) -> None:
    """What the file is to be called: numpy.memmap has a path object where it was given one."""
    _filenames[region] = filename


def filename_of(region: _core.Region) -> Any:
    return _filenames.get(region, _sources[region].location.path)


_block_bytes: weakref.WeakKeyDictionary[_core.Region, int] = weakref.WeakKeyDictionary()


def set_block_bytes(region: _core.Region, count: int) -> None:
    _block_bytes[region] = count


def block_bytes_of(region: _core.Region) -> int:
    """How much of the region is worked on at a time: a small part of the budget."""
    return _block_bytes.get(region, 1 << 20)


def open_regions() -> list[_core.Region]:
    # keyrefs() is one step: other threads, the collector and handlers of signals may open some.
    regions = [ref() for ref in _sources.keyrefs()]
    return [r for r in regions if r is not None and r.is_mapped and not r.is_inherited]


def is_open(identity: tuple[int, int] | None, beside: _core.Region | None = None) -> bool:
    """Whether the store of this identity is open here, in another region than ``beside``."""
    return identity is not None and any(_sources[r].identity == identity and r is not beside
                                        for r in open_regions())


@atexit.register
def _end_at_exit() -> None:
    for region in open_regions():
        region.end_at_exit()
