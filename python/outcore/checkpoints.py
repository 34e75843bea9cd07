"""Checkpoints: arrays, and ordinary memory beside them, as they were at one moment."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _core
from .array import Array
from .attributes import check_text
from .view import View


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint of a pool, as ``list_checkpoints`` tells of it."""

    name: str
    number: int  # ascends in the order in which they were made
    time: datetime.datetime  # UTC
    comment: str
    size_bytes: int  # of its objects together
    only_bytes: int  # what its removal alone would give back


def _checkpoint_of(info: tuple[Any, ...]) -> Checkpoint:
    name, number, seconds, *rest = info
    return Checkpoint(name, number, datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc),
                      *rest)


@dataclass(frozen=True)
class CheckpointReport:
    """What a checkpoint cost."""

    number: int
    pause: float  # seconds in which the program's threads were held
    seconds: float  # of the whole
    precopied_bytes: int  # written pages that were stored while the program ran
    frozen_bytes: int  # those that were left
    copied_bytes: int  # of memory, and of arrays of other stores: what differed
    stopped_threads: int


def pool_url(where: Any) -> str:
    """The pool that a folder, or a URL versioned:FOLDER with anything behind it, names.

    >>> pool_url("versioned:/scratch/run?object=grid"), pool_url("/scratch/run")
    ('versioned:/scratch/run', 'versioned:/scratch/run')
    """
    text = os.fsdecode(os.fspath(where))
    kept = _core.checkpoints_of(os.fsencode(where))
    if kept == "snapshots":
        return text
    if kept == "pool":
        text = text.partition(":")[2].partition("?")[0]
    return "versioned:" + os.path.abspath(text)


def checkpoint(name: str, parts: Mapping[str, Any] | Iterable[Array[Any]] | Array[Any], *,
               pool: Any = None, comment: str = "", quiesce: Callable[[], Any] | None = None,
               resume: Callable[[], Any] | None = None) -> CheckpointReport:
    """Keeps all parts as they are at one moment, durably; the program's threads go on meanwhile.

    ``parts`` are arrays on ``versioned:FOLDER?object=…``, or a mapping from names to arrays of any
    store, NumPy arrays and other bytes: what is not of the pool is copied into its object of that
    name. ``pool`` is the folder; not needed where an array is in it. While ``quiesce()`` has been
    called and ``resume()`` not, the program promises to write to no part; without them threads are
    held for some milliseconds where it must be.

    >>> import tempfile, outcore
    >>> folder = tempfile.mkdtemp()
    >>> grid = outcore.open(f"versioned:{folder}/run?object=grid", "w", shape=1000, dtype="f8")
    >>> grid[:] = 1
    >>> report = outcore.checkpoint("step 1", grid)
    >>> grid[:] = 2
    >>> grid.close()
    >>> last = outcore.restart(f"{folder}/run")
    >>> with outcore.open(last.url("grid"), shape=1000, dtype="f8") as grid:
    ...     last.name, float(grid.sum())
    ('step 1', 1000.0)
    """
    if (quiesce is None) != (resume is None):
        raise TypeError("checkpoint: give both quiesce and resume, or neither")
    check_text("the name of a checkpoint", name)
    check_text("the comment of a checkpoint", comment)
    url = None if pool is None else pool_url(pool)
    named = parts.items() if isinstance(parts, Mapping) else \
        [("", part) for part in ([parts] if isinstance(parts, Array) else list(parts))]
    homes = {id(part): pool_url(part.url) for _, part in named
             if isinstance(part, Array) and _core.checkpoints_of(os.fsencode(part.url)) == "pool"}
    home = url or next(iter(homes.values()), None)
    all_parts: list[tuple[str, Any]] = []
    for key, part in named:
        check_text("the name of a part", key)
        if isinstance(part, View):
            raise TypeError(f"checkpoint: {key or 'a part'} is a view: give its array")
        if not isinstance(part, Array):
            all_parts.append((key, part))
        elif home is not None and homes.get(id(part)) == home:  # by its own name
            all_parts.append(("", part._region))
        else:
            all_parts.append((key, part._region))
    made = _core.checkpoint(name, all_parts, url or "", comment, quiesce, resume)
    return CheckpointReport(made["number"], made["pause_ns"] / 1e9, made["seconds_ns"] / 1e9,
                            made["precopied_bytes"], made["frozen_bytes"], made["copied_bytes"],
                            made["stopped_threads"])


class Restart(Mapping[str, bytes]):
    """A checkpoint that its pool was brought back to: a mapping from objects to their bytes.

    Arrays are opened again by ``url(object)``; for what was a NumPy array,
    ``numpy.frombuffer(last['state'])`` reads the bytes.
    """

    def __init__(self, pool: str, core: _core.Restart) -> None:
        self._core = core
        self.checkpoint = _checkpoint_of(core.info)
        self._sizes = _core.list_objects(pool, self.name)

    @property
    def name(self) -> str:
        return self.checkpoint.name

    def url(self, name: str) -> str:
        """What to open to go on with an object."""
        self._check_object(name)
        return self._core.uri_of(name)

    def size_bytes(self, name: str) -> int:
        self._check_object(name)
        return self._sizes[name]

    def __getitem__(self, name: str) -> bytes:
        self._check_object(name)
        return self._core.read(name)

    def _check_object(self, name: str) -> None:
        if name not in self._sizes:
            raise KeyError(f"the checkpoint '{self.name}' has no object {name!r}: it has "
                           f"{', '.join(self._sizes) or 'none'}")

    def __iter__(self) -> Any:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)

    def __repr__(self) -> str:
        return f"<outcore.Restart from '{self.name}' with {', '.join(self._sizes) or 'nothing'}>"


def restart(pool: Any, name: str | None = None) -> Restart:
    """Brings all objects of the pool back to a checkpoint, the newest if none is named.

    No array may be open on the pool. FileNotFoundError: there is no checkpoint (yet).
    """
    url = pool_url(pool)
    return Restart(url, _core.restart(url, name or ""))


def list_checkpoints(pool: Any) -> list[Checkpoint]:
    """The pool's checkpoints, the oldest first."""
    return [_checkpoint_of(info) for info in _core.list_checkpoints(pool_url(pool))]


def remove_checkpoints(pool: Any, *names: str) -> None:
    """All of them or none; their space is used again."""
    _core.remove_checkpoints(pool_url(pool), list(names))
