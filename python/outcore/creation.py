"""Creation: open, memmap, and arrays on scratch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from . import registry, words
from .array import Array
from .location import locate, scratch_url
from .runtime import Runtime, open_plan


def open(url: Any, mode: words.Mode = "r", shape: Any = None, dtype: Any = None,
         order: words.Order | None = None, offset: int = 0, *,
         budget: int | float | str | None = None, page: int | str = "auto",
         policy: str | None = None, advise: words.Advice = "auto", runtime: Runtime | None = None,
         reserve: int | str | None = None, format: words.Format | None = None,
         delivery: words.Delivery | None = None, frames: words.Frames | None = None,
         on_error: words.OnError | None = None, storage_options: Any = None) -> Array[Any]:
    """Opens what ``url`` names as an array.

    ``url`` is a path, a path object, or the URL of a store, as ``sparse:FOLDER`` or
    ``scratch:``; docs/reference/stores.md has all of them and their parameters. A file ``….npy``
    has its own shape, dtype and order, and is created with a header; ``format='raw'`` takes its
    bytes as they are.

    ========= ====================================================================================
    mode      meaning
    ========= ====================================================================================
    r         read; the file must be there, and is never made
    r+        read and write what is there
    w, w+     create, or empty what is there; needs ``shape`` and ``dtype``
    x, w-     create; FileExistsError if it is there
    a         read and write; created or made longer if need be
    c         write privately: changes stay in this process and never reach the file
    ========= ====================================================================================

    NumPy's 'readonly', 'readwrite', 'write' and 'copyonwrite' mean r, r+, w+ and c.

    ``budget`` and ``policy`` give the array a runtime of its own, which ends with it; else it
    shares that of ``runtime``, or the default one. ``page`` is the unit of reading and evicting,
    4 KiB to 16 MiB: larger where you read in long runs. ``advise`` is 'random', 'sequential' or
    'auto'. ``reserve`` keeps addresses for ``resize``. ``delivery``, ``frames`` and ``on_error``
    are told in docs/reference/options.md.

    Processes that write one file at the same time must share a buffer (``Runtime(buffer=…)``) or
    write whole pages each: of a page that two of them write, one loses bytes, without an error.

    Errors: OSError with errno and filename; ValueError for arguments that cannot be.

    >>> import outcore, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "squares.npy")
    >>> with outcore.open(path, "w", shape=(1000, 10), dtype="f4", budget="16MiB") as a:
    ...     a[:, 0] = range(1000)
    >>> with outcore.open(path) as a:
    ...     a.shape, a.dtype, float(a[999, 0])
    ((1000, 10), dtype('float32'), 999.0)
    """
    return Array(open_plan(url, mode, shape, dtype, order, offset, budget=budget, page=page,
                           policy=policy, advise=advise, runtime=runtime, reserve=reserve,
                           format=format, delivery=delivery, frames=frames, on_error=on_error,
                           storage_options=storage_options))


class memmap(Array[Any]):  # noqa: N801 (NumPy's name)
    """numpy.memmap's arguments, in its order and with its defaults, within a budget.

    It differs where numpy.memmap leaves its users alone: ``close()``, a context manager, pickling
    by reference. It is no ndarray: ``numpy.asarray(m)`` is one, over the same memory. ``flush``
    makes the file durable, as numpy's does.

    >>> import outcore, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "a.dat")
    >>> m = outcore.memmap(path, dtype="float32", mode="w+", shape=(3, 4))
    >>> m[:] = 1
    >>> m.flush()
    >>> float(outcore.memmap(path, dtype="float32", mode="r", shape=(3, 4)).sum())
    12.0
    """

    def __init__(self, filename: Any, dtype: Any = np.uint8, mode: words.Mode = "r+",
                 offset: int = 0, shape: Any = None, order: words.Order = "C",
                 **options: Any) -> None:
        options.setdefault("format", "raw")
        location = locate(filename)
        is_grown = mode not in ("r", "readonly", "c", "copyonwrite")
        if not is_grown and location.exists() and location.size_bytes() == 0:
            raise ValueError(f"{location.path}: cannot mmap an empty file")
        super().__init__(open_plan(filename, mode, shape, dtype, order, offset, may_extend=True,
                                   **options))
        self._is_leak = False  # code written for numpy.memmap knows no close()
        if self._location.is_descriptor:
            registry.name(self._region, None)
        elif isinstance(filename, os.PathLike):
            registry.name(self._region, Path(filename).resolve())

    def flush(self, range: Any = None, wait: bool = True, progress: Any = None) -> Any:
        """Writes what changed to the file, durably; see Array.flush."""
        if range is None and wait:
            super().flush(None, True, progress)
            self._region.sync()
            return None
        return super().flush(range, wait, progress)

    def copy(self, order: str = "C") -> np.ndarray[Any, Any]:
        """All of it in ordinary memory."""
        found = self.read()
        return found if order in ("K", "A") else np.asarray(found, order=order)  # type: ignore


def empty(shape: Any, dtype: Any = float, order: words.Order = "C", *, scratch_dir: Any = None,
          **options: Any) -> Array[Any]:
    """A new array on scratch space, which may be many times the memory. It reads zero.

    It lies in an unnamed file of the folder ``scratch_dir``, by default that of the option of this
    name, and is gone when the last view of it is. ``options`` as for ``open``.

    >>> import outcore
    >>> outcore.empty((2, 3), "i4").shape
    (2, 3)
    """
    return open(scratch_url(scratch_dir), "w", shape, dtype, order, **options)


def zeros(shape: Any, dtype: Any = float, order: words.Order = "C",
          **options: Any) -> Array[Any]:
    """As ``empty``: scratch reads zero.

    >>> import outcore
    >>> float(outcore.zeros((1000, 1000), "f4").sum())
    0.0
    """
    return empty(shape, dtype, order, **options)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: words.Order = "C",
         **options: Any) -> Array[Any]:
    """A new array on scratch space, filled with ``fill_value``.

    >>> import outcore
    >>> outcore.full(3, 7).read()
    array([7, 7, 7])
    """
    array = empty(shape, np.asarray(fill_value).dtype if dtype is None else dtype, order, **options)
    array[...] = fill_value
    return array


def like(prototype: Any, dtype: Any = None, order: words.Order | None = None, shape: Any = None,
         **options: Any) -> Array[Any]:
    """A new array on scratch space with the shape, dtype and order of another array.

    >>> import numpy, outcore
    >>> outcore.like(numpy.ones((2, 3), order="F"), dtype="i2").order
    'F'
    """
    given = prototype if hasattr(prototype, "dtype") else np.asarray(prototype)
    if order is None:
        flags = getattr(given, "flags", None)
        is_f = flags is not None and flags.f_contiguous and not flags.c_contiguous
        order = "F" if is_f else "C"
    return empty(given.shape if shape is None else shape, dtype or given.dtype, order, **options)
