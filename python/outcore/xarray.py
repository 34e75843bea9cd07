"""Xarray: `xarray.open_dataset(path, engine="outcore")` opens an array lazily, by reference, or a
container of named arrays."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from . import words
from .array import Array
from .creation import open as open_array
from .npy import is_npy_name
from .xarray_containers import is_container, open_container


class LazyArray(BackendArray):
    """What xarray reads parts of. It is pickled by reference, as its array is."""

    def __init__(self, array: Array[Any]) -> None:
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER_1VECTOR, self._part)

    def _part(self, key: tuple[Any, ...]) -> Any:
        if any(isinstance(k, np.ndarray) for k in key[:1]) and \
                all(k == slice(None) for k in key[1:]):
            return self.array[key[0]]
        found = self.array[key]
        return np.asarray(found) if isinstance(found, np.ndarray) else found


class OutcoreEntrypoint(BackendEntrypoint):
    """One array as a Dataset with one variable, or a container as one with all of its arrays.

    >>> import numpy, outcore, tempfile, os, xarray
    >>> path = os.path.join(tempfile.mkdtemp(), "t.npy")
    >>> numpy.save(path, numpy.arange(12.0).reshape(3, 4))
    >>> ds = xarray.open_dataset(path, engine="outcore", name="t", dims=("time", "x"))
    >>> float(ds.t.sel(time=2).sum())
    38.0
    >>> ds.close()
    """

    description = "Containers of named arrays (.oca), and arrays in .npy and raw files"
    url = "docs/guides/python.md"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "name", "dims", "coords",
                               "attrs", "mode", "shape", "dtype", "order", "offset", "budget",
                               "page", "policy", "advise", "format", "runtime", "mask_and_scale",
                               "decode_times", "concat_characters", "decode_coords", "use_cftime",
                               "decode_timedelta")

    def open_dataset(self, filename_or_obj: Any, *,
                     drop_variables: str | Iterable[str] | None = None, name: str = "data",
                     dims: Any = None, coords: Mapping[Any, Any] | None = None,
                     attrs: Mapping[Any, Any] | None = None, mode: words.Mode = "r",
                     shape: Any = None, dtype: Any = None,
                     order: words.Order | None = None, offset: int = 0,
                     budget: Any = None, page: Any = "auto", policy: str | None = None,
                     advise: words.Advice = "auto", format: words.Format | None = None,
                     runtime: Any = None, mask_and_scale: Any = True, decode_times: Any = True,
                     concat_characters: Any = True, decode_coords: Any = True,
                     use_cftime: Any = None, decode_timedelta: Any = None) -> Dataset:
        """``dims`` names the axes, else they are dim_0, dim_1, …; the rest is as in
        ``outcore.open``. A container (a path that ends in .oca, a file that is one, or Arrays)
        takes ``dims`` as ``{"u": ("time", "x")}``, ``drop_variables``, ``runtime`` and what
        decodes by CF."""
        if format is None and is_container(filename_or_obj):
            given = {"name": name != "data", "coords": coords, "attrs": attrs, "shape": shape,
                     "dtype": dtype, "order": order, "offset": offset, "budget": budget,
                     "policy": policy, "mode": mode != "r"}
            wrong = [key for key, value in given.items() if value]
            if wrong:
                raise TypeError(f"{', '.join(wrong)}: not for a container, whose arrays have their "
                                "own; a budget is a runtime's, runtime=outcore.Runtime(…)")
            return open_container(
                filename_or_obj, dims=dims, runtime=runtime, drop_variables=drop_variables,
                mask_and_scale=mask_and_scale, decode_times=decode_times,
                concat_characters=concat_characters, decode_coords=decode_coords,
                use_cftime=use_cftime, decode_timedelta=decode_timedelta)
        array = open_array(filename_or_obj, mode, shape, dtype, order, offset, budget=budget,
                           page=page, policy=policy, advise=advise, format=format, runtime=runtime)
        array._is_leak = False  # the dataset's, which closes it or drops it
        names = tuple(dims) if dims is not None else tuple(f"dim_{i}" for i in range(array.ndim))
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        variables = {}
        if name not in dropped:
            lazy = indexing.LazilyIndexedArray(LazyArray(array))
            encoding = {"preferred_chunks": _chunks(array, names)}
            variables[name] = Variable(names, lazy, attrs, encoding)
        dataset = Dataset(variables, coords=coords)
        dataset.set_close(functools.partial(_close, array))
        return dataset

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        return is_container(filename_or_obj) or (
            isinstance(filename_or_obj, (str, os.PathLike)) and
            is_npy_name(os.fsdecode(os.fspath(filename_or_obj))))


def _chunks(array: Array[Any], names: tuple[str, ...]) -> dict[str, int]:
    """Runs of the file of about 64 MiB."""
    if array.ndim == 0:
        return {}
    axis = 0 if array.order == "C" else array.ndim - 1
    row_bytes = max(array.nbytes // max(array.shape[axis], 1), 1)
    chunks = dict(zip(names, array.shape))
    chunks[names[axis]] = max(1, min(array.shape[axis], (64 << 20) // row_bytes))
    return chunks


def _close(array: Array[Any]) -> None:
    """Views that are still in use keep the memory; it goes with the last of them."""
    try:
        array.close()
    except BufferError:
        pass
