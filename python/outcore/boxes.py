"""Boxes: which box of an array a key needs, and how it is loaded where that is too much at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

_PIECE_BYTES = 64 << 20  # of elements that are loaded and not wanted
_GAP_BYTES = 1 << 20  # that cost less to read than to pass over

Load = Callable[[list[int], list[int]], np.ndarray[Any, Any]]


def box_of(key: Any, shape: tuple[int, ...]) -> tuple[list[int], list[int], tuple[Any, ...]]:
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
            raise IndexError(f"{part!r} is not an index: numbers, slices, lists of numbers, ...")
        picked = picked.astype(np.int64)
        if picked.size and (picked.min() < -n or picked.max() >= n):
            raise IndexError(f"{part!r} is outside of {n} elements")
        picked = np.where(picked < 0, picked + n, picked)
        low = int(picked.min()) if picked.size else 0
        offsets.append(low)
        dims.append(int(picked.max()) + 1 - low if picked.size else 0)
        rest.append(int(picked) - low if picked.ndim == 0 else picked - low)
    return offsets, dims, tuple(rest)


def gather(load: Load, offsets: list[int], dims: list[int], rest: tuple[Any, ...],
           dtype: np.dtype[Any], order: str) -> Any:
    """The elements that `rest` picks of a box; of a large one by pieces, without what is between
    them."""
    parts = [part for part in rest if part is not None]
    lists = [part for part in parts if isinstance(part, np.ndarray)]
    is_outer = not lists or (len(lists) == 1 and lists[0].ndim == 1 and
                             not any(isinstance(part, int) for part in parts))
    is_whole = all(isinstance(part, int) or part == slice(None) for part in parts
                   if not isinstance(part, np.ndarray)) and not lists
    nbytes = dtype.itemsize
    for n in dims:
        nbytes *= n
    if nbytes <= _PIECE_BYTES or is_whole or not is_outer:
        return load(offsets, dims)[rest]
    axes = range(len(dims)) if order == "C" else range(len(dims) - 1, -1, -1)
    axis = next(i for i in axes if dims[i] > 1)
    picks = [slice(None) if isinstance(part, int) else part for part in parts]
    part = picks[axis]
    wanted: Any = np.unique(part) if isinstance(part, np.ndarray) else \
        range(0, dims[axis], abs(part.step or 1))
    row_bytes = nbytes // dims[axis]
    shape = [len(range(n)[pick]) if isinstance(pick, slice) else len(pick)
             for n, pick in zip(dims, picks)]
    shape[axis] = len(wanted)
    found: Any = np.empty(shape, dtype, order="F" if order == "F" else "C")
    here: list[Any] = [slice(None)] * len(dims)
    for first, last in _runs(wanted, max(1, _PIECE_BYTES // row_bytes), _GAP_BYTES // row_bytes):
        low, high = int(wanted[first]), int(wanted[last - 1]) + 1
        at, size, pick = list(offsets), list(dims), list(picks)
        at[axis], size[axis] = offsets[axis] + low, high - low
        pick[axis] = slice(None, None, wanted.step) if isinstance(wanted, range) \
            else wanted[first:last] - low
        here[axis] = slice(first, last)
        found[tuple(here)] = load(at, size)[tuple(pick)]
    last_step = [slice(None)] * len(dims) if not isinstance(part, slice) or (part.step or 1) > 0 \
        else [slice(None, None, -1) if i == axis else slice(None) for i in range(len(dims))]
    if isinstance(part, np.ndarray):
        found = np.take(found, np.searchsorted(wanted, part), axis)
    found = found[tuple(last_step)]
    return found[tuple(None if each is None else 0 if isinstance(each, int) else slice(None)
                       for each in rest)]


def _runs(wanted: Any, rows_max: int, gap_max: int) -> Iterator[tuple[int, int]]:
    """Parts of ascending rows: each spans few enough of them, and has no large gap."""
    if isinstance(wanted, range):
        count = 1 + (rows_max - 1) // wanted.step if wanted.step <= gap_max + 1 else 1
        for first in range(0, len(wanted), count):
            yield first, min(first + count, len(wanted))
        return
    first = 0
    for i in range(1, len(wanted) + 1):
        if i == len(wanted) or wanted[i] - wanted[i - 1] > gap_max + 1 or \
                wanted[i] - wanted[first] >= rows_max:
            yield first, i
            first = i
