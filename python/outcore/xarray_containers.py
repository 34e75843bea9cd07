"""Containers of named arrays for xarray: each array a variable, read when it is needed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import AbstractDataStore, BackendArray
from xarray.backends.store import StoreBackendEntrypoint
from xarray.core import indexing

from .arrays import Arrays
from .datasets import dims_of, values_of
from .stored_array import StoredArray

_MAGIC = b"OUTCARR\n"  # of one of two header pages


def is_container(where: Any) -> bool:
    """By its name, or by what the file begins with."""
    if isinstance(where, Arrays):
        return True
    if not isinstance(where, (str, os.PathLike)):
        return False
    name = os.fsdecode(os.fspath(where))
    if name.endswith(".oca"):
        return True
    try:
        with open(name, "rb") as file:
            pages = file.read(2 * 4096)
            return _MAGIC in (pages[:len(_MAGIC)], pages[4096:4096 + len(_MAGIC)])
    except (OSError, ValueError):
        return False


class LazyStoredArray(BackendArray):
    """What xarray reads parts of. It is pickled by reference, as its array is."""

    def __init__(self, array: StoredArray) -> None:
        self.array = array
        self.shape = array.shape
        # Of texts of one letter xarray would make one text: it takes S1 for what NetCDF has.
        self.dtype = np.dtype("S2") if array.dtype == np.dtype("S1") else array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER_1VECTOR, self._part)

    def _part(self, key: tuple[Any, ...]) -> Any:
        """Axes stay where they are, also beside a list: numbers go at the end."""
        is_number = [isinstance(k, (int, np.integer)) for k in key]
        box = [slice(int(k) % n, int(k) % n + 1) if is_one else k
               for k, n, is_one in zip(key, self.shape, is_number)]
        found = self.array[tuple(box)][tuple(0 if is_one else slice(None) for is_one in is_number)]
        return found.astype(self.dtype, copy=False)


class ContainerStore(AbstractDataStore):
    """A container as xarray's backends have it. Closing it closes what it opened."""

    def __init__(self, run: Arrays, is_own: bool,
                 dims: Mapping[str, Iterable[str]] | None = None) -> None:
        self._run, self._is_own, self._dims = run, is_own, dims or {}
        for name in self._dims:
            if name not in run:
                raise ValueError(f"dims: {run._shown} has no array {name!r}")

    def get_variables(self) -> dict[str, Variable]:
        variables = {}
        for name in self._run:
            kind = self._run._core.info(name)[0]
            if kind != "object":  # of a program of its own
                variables[name] = self._variable(name, self._run[name])
        return variables

    def _variable(self, name: str, value: Any) -> Variable:
        texts = dict(self._run._attributes_of(name))
        if not isinstance(value, StoredArray):
            return Variable((), value, values_of(texts))
        dims = dims_of(name, value.shape, texts, self._dims.get(name))
        encoding: dict[str, Any] = {"source": self._run.url}
        if value.chunks is not None:
            encoding["preferred_chunks"] = dict(zip(dims, value.chunks))
        if value.tiles:
            encoding["tiles"] = value.tiles
        if value.compress:
            encoding["compress"] = value.compress
        if value.order == "F":
            encoding["order"] = "F"
        lazy = indexing.LazilyIndexedArray(LazyStoredArray(value))
        return Variable(dims, lazy, values_of(texts), encoding)

    def get_attrs(self) -> dict[str, Any]:
        return values_of(self._run.attrs)

    def get_dimensions(self) -> dict[str, int]:
        return {str(dim): n for v in self.get_variables().values() for dim, n in v.sizes.items()}

    def close(self, **options: Any) -> None:
        if self._is_own:
            self._run.close()

    def __reduce__(self) -> Any:
        """A dataset brings its way to be closed along. Arrays of one that comes back open the
        container themselves, and nothing else has to be closed there."""
        return _Closed, ()


class _Closed:
    def close(self, **options: Any) -> None:
        pass


def open_container(where: Any, *, dims: Any = None, runtime: Any = None,
                   **decoding: Any) -> Dataset:
    """``dims`` names the axes of arrays: ``{"u": ("time", "x")}``; ``decoding`` is xarray's."""
    if dims is not None and not isinstance(dims, Mapping):
        raise TypeError('dims: a container has several arrays: dims={"u": ("time", "x")}')
    is_own = not isinstance(where, Arrays)
    run = Arrays(where, runtime=runtime) if is_own else where
    try:
        store = ContainerStore(run, is_own, dims)
        return StoreBackendEntrypoint().open_dataset(store, **decoding)
    except BaseException:
        if is_own:
            run.close()
        raise
