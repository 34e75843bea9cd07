"""Named arrays in one container: a mapping from names to arrays that are read by parts."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from . import _core

_MODES = {"r": "r", "w": "w", "a": "a", "r+": "a"}


def _kept(dtype: np.dtype[Any]) -> tuple[str, np.dtype[Any], str]:
    """The container's word for a dtype, the dtype of what is kept, and what else to note of it."""
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise TypeError(f"{dtype} holds Python objects, whose bytes mean nothing elsewhere: "
                        "store numbers, or text as str or S")
    if dtype.kind == "U":
        raise TypeError(f"{dtype} is text of 4 bytes a letter: encode it, "
                        "numpy.char.encode(values), or store one str")
    little = dtype.newbyteorder("<")
    if dtype.names is not None:
        return f"V{little.itemsize}", little, repr(np.lib.format.dtype_to_descr(little))
    if dtype.kind in "mM":
        return "<i8", little, little.str
    return little.str.lstrip("|") if dtype.kind in "SV" else little.str, little, ""


class StoredArray:
    """An array of a container: shape and dtype at once, elements when they are asked for.

    ``a[10:20, :, 5]`` reads that box, ``a[...]`` all of it, ``a[0:10] = values`` writes; both as
    NumPy arrays. Threads may read and write at once. Works with ``dask.array.from_array``.
    """

    def __init__(self, core: _core.Arrays, name: str) -> None:
        self._core = core
        self.name = name
        kind, dims, is_column, tiles, self._stored_bytes = core.info(name)
        self._kind = kind
        self.shape: tuple[int, ...] = tuple(dims)
        self.order = "F" if is_column else "C"
        self.tiles: tuple[int, ...] = tuple(tiles)
        noted = core.attribute(name, "numpy")
        self.dtype: np.dtype[Any] = np.dtype(ast.literal_eval(noted) if noted.startswith("[")
                                             else noted or kind)
        self.attrs = Attributes(core, name)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("one value has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<outcore.StoredArray '{self.name}' {self.shape} {self.dtype}>"

    def _load(self, offsets: list[int], dims: list[int]) -> np.ndarray[Any, Any]:
        box = np.empty(dims, self.dtype, order="F" if self.order == "F" else "C")
        if box.size:
            self._core.load_box(self.name, self._kind, _bytes(box), offsets, dims)
        return box

    def __getitem__(self, key: Any) -> Any:
        offsets, dims, rest = _box(key, self.shape)
        box = self._load(offsets, dims)[rest]
        return box[()] if box.ndim == 0 else box

    def __setitem__(self, key: Any, value: Any) -> None:
        offsets, dims, rest = _box(key, self.shape)
        for part in rest:
            if part is None or isinstance(part, np.ndarray) or \
                    (isinstance(part, slice) and part.step not in (None, 1)):
                raise IndexError(f"store '{self.name}': a box is written by numbers and slices "
                                 "without steps")
        shape = [n for n, part in zip(dims, rest) if isinstance(part, slice)]
        box = np.broadcast_to(np.asarray(value), shape).reshape(dims)
        box = np.asarray(box, self.dtype, order="F" if self.order == "F" else "C")
        if box.size:
            self._core.store_box(self.name, self._kind, _bytes(box), offsets, dims)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("its elements are not in memory: a copy is needed")
        return np.asarray(self[...], dtype)


class Attributes(MutableMapping[str, str]):
    """Short texts with an array, or with the container."""

    def __init__(self, core: _core.Arrays, name: str) -> None:
        self._core, self._name = core, name

    def _keys(self) -> list[str]:
        return [key for key in self._core.attributes(self._name) if key != "numpy"]

    def __getitem__(self, key: str) -> str:
        if key not in self._keys():
            raise KeyError(key)
        return self._core.attribute(self._name, key)

    def __setitem__(self, key: str, text: str) -> None:
        if not text:
            raise ValueError("an attribute's text is not empty")
        self._core.set_attribute(self._name, key, str(text))

    def __delitem__(self, key: str) -> None:
        if key not in self._keys():
            raise KeyError(key)
        self._core.set_attribute(self._name, key, "")

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    def __repr__(self) -> str:
        return repr(dict(self))


class Arrays(MutableMapping[str, Any]):
    """A container of named arrays: docs/guides/arrays.md.

    ``mode`` is ``r``, ``w`` (new; replaces a container) or ``a`` (more arrays). Several processes
    write together with ``comm``, an mpi4py communicator, or ``processes``, how many there are: all
    of them open, allocate, store their boxes and close. What is written is there for others when
    the last has closed.

    >>> import numpy, tempfile, outcore
    >>> path = tempfile.mkdtemp() + "/run.oca"
    >>> with outcore.Arrays(path, "w") as out:
    ...     out["t"] = numpy.arange(6.0).reshape(2, 3)
    ...     out["title"] = "a flame"
    ...     u = out.alloc("u", (1000, 1000), "f4")
    ...     u[10:20] = 1
    >>> with outcore.Arrays(path) as run:
    ...     sorted(run), run["title"], run["t"][1, :].tolist(), float(run["u"][15, 3])
    (['t', 'title', 'u'], 'a flame', [3.0, 4.0, 5.0], 1.0)
    """

    def __init__(self, url: Any, mode: str = "r", *, comm: Any = None,
                 processes: int | None = None) -> None:
        if mode not in _MODES:
            raise ValueError(f"mode {mode!r}: write r, w or a")
        if comm is not None and processes is not None:
            raise TypeError("give a communicator, or the number of processes")
        rank, size = 0, processes or 1
        any_failed: Callable[[bool], bool] | None = None
        if comm is not None:
            rank, size = comm.Get_rank(), comm.Get_size()
            any_failed = lambda failed: any(comm.allgather(failed))  # noqa: E731
        self.url = os.fsdecode(os.fspath(url))
        self._core = _core.Arrays(self.url, _MODES[mode], rank, size, any_failed)
        self.attrs = Attributes(self._core, "")

    def __getitem__(self, name: str) -> Any:
        """A StoredArray; one value as a NumPy scalar, text as str."""
        if not self._core.has(name):
            raise KeyError(name)
        kind, dims, *_ = self._core.info(name)
        if kind in ("text", "object"):
            text = bytearray(dims[0])
            if text:
                self._core.load_box(name, kind, text, [0], dims)
            return text.decode(errors="surrogateescape") if kind == "text" else bytes(text)
        array = StoredArray(self._core, name)
        return array[()] if not dims else array

    def __setitem__(self, name: str, value: Any) -> None:
        self.store(name, value)

    def store(self, name: str, value: Any, *, order: str | None = None,
              tiles: Sequence[int] = ()) -> None:
        """A whole array, number or text, in place of what has the name."""
        if isinstance(value, str):
            text = value.encode(errors="surrogateescape")
            self._core.store_whole(name, "text", [len(text)], text, False, [])
            return
        values = np.asanyarray(value)
        is_column = order == "F" or (order is None and values.ndim > 1 and
                                     values.flags.f_contiguous and not values.flags.c_contiguous)
        kind, dtype, noted = _kept(values.dtype)
        values = np.asarray(values, dtype, order="F" if is_column else "C")
        self._core.store_whole(name, kind, values.shape, _bytes(values), is_column, list(tiles))
        if noted:
            self._core.set_attribute(name, "numpy", noted)

    def alloc(self, name: str, shape: int | Sequence[int], dtype: Any = "f8", *, order: str = "C",
              tiles: Sequence[int] = ()) -> StoredArray:
        """Room for an array, to be stored by boxes; what is not stored reads zero."""
        kind, _, noted = _kept(np.dtype(dtype))
        dims = [int(shape)] if isinstance(shape, (int, np.integer)) else [int(n) for n in shape]
        self._core.alloc(name, kind, dims, order == "F", list(tiles))
        if noted:
            self._core.set_attribute(name, "numpy", noted)
        return StoredArray(self._core, name)

    def __delitem__(self, name: str) -> None:
        if not self._core.has(name):
            raise KeyError(name)
        self._core.remove(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._core.list())

    def __len__(self) -> int:
        return len(self._core.list())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._core.has(name)

    def rename(self, name: str, to: str) -> None:
        self._core.rename(name, to)

    def flush(self) -> None:
        """What is stored is durable; of one process alone, and there for others."""
        self._core.flush()

    def close(self) -> None:
        self._core.close()

    def __enter__(self) -> Arrays:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self._core.is_open:
            return f"<outcore.Arrays '{self.url}', closed>"
        return f"<outcore.Arrays '{self.url}' with {', '.join(self) or 'nothing'}>"


def _bytes(values: np.ndarray[Any, Any]) -> Any:
    """Its memory, in the order that it has; the buffer protocol does not know all dtypes."""
    return values.reshape(-1, order="A").view(np.uint8)


def _box(key: Any, shape: tuple[int, ...]) -> tuple[list[int], list[int], tuple[Any, ...]]:
    """The smallest box that has all elements of the key, and what is left to do within it."""
    keys = list(key) if isinstance(key, tuple) else [key]
    given = sum(1 for part in keys if part is not None and part is not Ellipsis)
    if given > len(shape):
        raise IndexError(f"{given} indices: the array has {len(shape)} dimensions")
    fill = [slice(None)] * (len(shape) - given)
    at = next((i for i, part in enumerate(keys) if part is Ellipsis), None)
    keys = keys + fill if at is None else keys[:at] + fill + keys[at + 1:]
    offsets: list[int] = []
    dims: list[int] = []
    rest: list[Any] = []
    for part in keys:
        if part is Ellipsis:
            raise IndexError("only one '...' at a time")
        if part is None:
            rest.append(None)
            continue
        n = shape[len(dims)]
        if isinstance(part, slice):
            indices = range(*part.indices(n))
            low, high = (min(indices[0], indices[-1]), max(indices[0], indices[-1]) + 1) \
                if indices else (0, 0)
            step = indices.step if indices else 1
            offsets.append(low)
            dims.append(high - low)
            rest.append(slice(None, None, step) if step != 1 else slice(None))
            continue
        picked = np.asarray(part)
        if picked.dtype == bool and picked.shape == (n,):
            picked = np.flatnonzero(picked)
        if picked.dtype.kind not in "iu" and picked.size:
            raise IndexError(f"{part!r} is no index: numbers, slices, lists of numbers, ...")
        picked = picked.astype(np.int64)
        if picked.size and (picked.min() < -n or picked.max() >= n):
            raise IndexError(f"{part!r} is outside of {n} elements")
        picked = np.where(picked < 0, picked + n, picked)
        low = int(picked.min()) if picked.size else 0
        offsets.append(low)
        dims.append(int(picked.max()) + 1 - low if picked.size else 0)
        rest.append(int(picked) - low if picked.ndim == 0 else picked - low)
    return offsets, dims, tuple(rest)
