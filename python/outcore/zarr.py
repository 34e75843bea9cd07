"""Zarr: a store of format 3 whose large files are read through outcore, within its budget.

What was read stays in memory as the budget allows, parts of shards are read by pages, and the codec
gets the file's bytes without a copy. Writing is LocalStore's: each chunk is a new file.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    SuffixByteRequest,
)
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.storage import LocalStore

from . import walk
from .array import Array
from .creation import open as open_array
from .fork_lock import ForkLock
from .runtime import Runtime, default_runtime
from .sizes import parse_bytes

if TYPE_CHECKING:
    from typing_extensions import Self

_FILES_MAX = 256


class OutcoreStore(LocalStore):
    """A folder as a zarr store.

    ``min_bytes``: smaller files are read as they are. ``runtime`` has the budget; by default the
    default one.

    >>> import outcore, tempfile, zarr
    >>> from outcore.zarr import OutcoreStore
    >>> store = OutcoreStore(tempfile.mkdtemp(), min_bytes="16k")
    >>> z = zarr.create_array(store, shape=(1000, 1000), chunks=(500, 1000), dtype="f4",
    ...                       compressors=None)
    >>> z[:] = 1
    >>> float(z[400:600].sum())
    200000.0
    """

    def __init__(self, root: Path | str, *, read_only: bool = False,
                 min_bytes: int | str = "64KiB", runtime: Runtime | None = None) -> None:
        super().__init__(root, read_only=read_only)
        self._min_bytes = parse_bytes(min_bytes)
        self._runtime = runtime
        self._arrays: OrderedDict[str, tuple[tuple[int, ...], Array[Any]]] = OrderedDict()
        self._arrays_lock = ForkLock()

    @classmethod
    async def open(cls, root: Path | str, *, read_only: bool = False, mode: Any = None,
                   min_bytes: int | str = "64KiB", runtime: Runtime | None = None) -> Self:
        """As LocalStore.open, with the arguments of the class."""
        is_made = not (read_only if mode is None else mode in ("r", "r+"))
        store = cls(root, read_only=not is_made, min_bytes=min_bytes, runtime=runtime)
        await store._open()
        store = store.with_read_only(read_only)
        await store._open()
        return store

    def with_read_only(self, read_only: bool = False) -> Self:
        return type(self)(self.root, read_only=read_only, min_bytes=self._min_bytes,
                          runtime=self._runtime)

    def __reduce__(self) -> Any:  # a runtime stays where it is
        return _remake, (type(self), str(self.root), self.read_only, self._min_bytes)

    def __repr__(self) -> str:
        return f"OutcoreStore({str(self.root)!r})"

    def __str__(self) -> str:
        return f"outcore://{self.root.as_posix()}"

    def _array_of(self, path: str, about: os.stat_result) -> Array[Any]:
        """The file's bytes as an array. A file that was replaced is opened anew."""
        stamp = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
        with self._arrays_lock:
            kept = self._arrays.pop(path, None)
            if kept is None or kept[0] != stamp or kept[1]._mapped.is_inherited:
                runtime = self._runtime or default_runtime()
                runtime._pager.renew()
                array = open_array(Path(path), "r", format="raw", runtime=runtime)
                array._is_leak = False  # dropped when others are wanted more
                kept = (stamp, array)
            self._arrays[path] = kept
            while len(self._arrays) > _FILES_MAX:
                self._arrays.popitem(last=False)
            return kept[1]

    def _read(self, path: Path, prototype: BufferPrototype,
              byte_range: ByteRequest | None) -> Buffer | None:
        try:
            about = os.stat(path)
            if about.st_size < max(self._min_bytes, 1):
                whole: np.ndarray[Any, Any] = np.frombuffer(path.read_bytes(), np.uint8)
                return prototype.buffer.from_array_like(whole[_slice_of(byte_range, len(whole))])
            array = self._array_of(os.fspath(path), about)
            part = np.asarray(array)[_slice_of(byte_range, array.size)]
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None
        if part.nbytes <= array.runtime.budget // 4:
            walk.bring_range(array._region, *walk.bounds_in(array._region, part))
        return prototype.buffer.from_array_like(part)

    def get_sync(self, key: str, *, prototype: BufferPrototype | None = None,
                 byte_range: ByteRequest | None = None) -> Buffer | None:
        self._ensure_open_sync()
        return self._read(self.root / key, prototype or default_buffer_prototype(), byte_range)

    async def get(self, key: str, prototype: BufferPrototype | None = None,
                  byte_range: ByteRequest | None = None) -> Buffer | None:
        if not self._is_open:
            await self._open()
        return await asyncio.to_thread(self._read, self.root / key,
                                       prototype or default_buffer_prototype(), byte_range)

    async def get_partial_values(
            self, prototype: BufferPrototype,
            key_ranges: Iterable[tuple[str, ByteRequest | None]]) -> list[Buffer | None]:
        return list(await asyncio.gather(*(self.get(key, prototype, byte_range)
                                           for key, byte_range in key_ranges)))

    def close(self) -> None:
        """Gives up the files that are open; what is in use of them stays until it is dropped."""
        with self._arrays_lock:
            self._arrays.clear()
        super().close()


def _remake(kind: type[OutcoreStore], root: str, read_only: bool, min_bytes: int) -> OutcoreStore:
    return kind(root, read_only=read_only, min_bytes=min_bytes)


def _slice_of(byte_range: ByteRequest | None, size: int) -> slice:
    if byte_range is None:
        return slice(0, size)
    if isinstance(byte_range, RangeByteRequest):
        return slice(byte_range.start, byte_range.end)
    if isinstance(byte_range, OffsetByteRequest):
        return slice(byte_range.offset, size)
    if isinstance(byte_range, SuffixByteRequest):
        return slice(max(0, size - byte_range.suffix), size)
    raise TypeError(f"Unexpected byte_range, got {byte_range!r}")
