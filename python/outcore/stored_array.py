"""StoredArray: an array of a container, whose elements are read when they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import boxes, container, stored_types
from .attributes import Attributes
from .container import Container
from .shaped import Shaped

_CHUNK_BYTES = 64 << 20


class StoredArray(Shaped):
    """An array of a container: shape and dtype at once, elements when they are asked for.

    ``a[10:20, :, 5]`` reads that box, ``a[...]`` and ``numpy.asarray(a)`` all of it,
    ``a[0:10] = values`` writes (one that is compressed: until it is finished), ``a.view()`` is the
    array as memory whose pages come when they are touched. Threads may read and write at once.
    Works with ``dask.array.from_array``; one of a container that is open for reading can be
    pickled, by reference.
    """

    def __init__(self, of: Container, name: str) -> None:
        self._container = of
        self._core = of.core
        self.name = name
        kind, dims, is_column, tiles, compress, self._stored_bytes = self._core.info(name)
        self._kind = kind
        self.shape: tuple[int, ...] = tuple(dims)
        self.order = "F" if is_column else "C"
        self.tiles: tuple[int, ...] = tuple(tiles)
        self.compress: str | None = compress or None
        self.dtype: np.dtype[Any] = stored_types.dtype_of(
            kind, self._core.attribute(name, stored_types.NOTE))
        self.attrs = Attributes(self._core, name)

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The pieces that it is best read by: its tiles, or runs of about 64 MiB. What dask's
        'auto' begins with."""
        if self.tiles or not self.size:
            return self.tiles or None
        left = max(_CHUNK_BYTES // self.itemsize, 1)
        chunks = list(self.shape)
        axes = range(self.ndim) if self.order == "F" else range(self.ndim - 1, -1, -1)
        for axis in axes:
            chunks[axis] = max(min(self.shape[axis], left), 1)
            left //= chunks[axis]
        return tuple(chunks)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("one value has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<outcore.StoredArray '{self.name}' {self.shape} {self.dtype}>"

    def _load(self, offsets: list[int], dims: list[int]) -> np.ndarray[Any, Any]:
        box = np.empty(dims, self.dtype, order="F" if self.order == "F" else "C")
        if box.size:
            self._core.load_box(self.name, self._kind, bytes_of(box), offsets, dims)
        return box

    def __getitem__(self, key: Any) -> Any:
        offsets, dims, rest = boxes.box_of(key, self.shape)
        box = boxes.gather(self._load, offsets, dims, rest, self.dtype, self.order)
        return np.asarray(box)[()] if box.ndim == 0 else box

    def __setitem__(self, key: Any, value: Any) -> None:
        offsets, dims, rest = boxes.box_of(key, self.shape)
        for part in rest:
            if part is None or isinstance(part, np.ndarray) or \
                    (isinstance(part, slice) and part.step not in (None, 1)):
                raise IndexError(f"store '{self.name}': a box is written by numbers and slices "
                                 "without steps")
        shape = tuple(n for n, part in zip(dims, rest) if isinstance(part, slice))
        order: Any = self.order
        if isinstance(value, np.ndarray) and value.dtype == self.dtype and value.shape == shape:
            box = np.asarray(value.reshape(dims), order=order)  # as it is, if it can be stored so
        else:  # NumPy says what the value means, or why it means nothing
            make: Any = np.zeros if self.dtype.names is not None else np.empty
            box = make(dims, self.dtype, order)
            at = tuple(part if isinstance(part, slice) else 0 for part in rest)
            box[(*at, ...) if shape else at] = value  # one element is no array without axes
        if box.size:
            self._core.store_box(self.name, self._kind, bytes_of(box), offsets, dims)

    @property
    def view(self) -> ArrayViews:
        """``a.view()``, or a part of it, ``a.view[10:20, :, 5]``: a read-only ndarray over the
        container itself. It stays usable when the container is closed.

        >>> import numpy, outcore, tempfile
        >>> with outcore.Arrays(tempfile.mkdtemp() + "/run.oca", "w") as out:
        ...     out["u"] = numpy.arange(6.0).reshape(2, 3)
        ...     out["u"].view[1].tolist(), out["u"].view().flags.writeable
        ([3.0, 4.0, 5.0], False)
        """
        return ArrayViews(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError(f"'{self.name}' is loaded, which is a copy: take its view()")
        return np.asarray(self[...], dtype)

    def __reduce__(self) -> Any:
        self._container.check_pickle()
        return _reopen, (self._container.location.url, self._container.stamp(), self.name)

    def __dask_tokenize__(self) -> Any:
        return ("outcore.StoredArray", *self._container.stamp(), self.name)


def _reopen(url: str, stamp: tuple[Any, ...], name: str) -> StoredArray:
    return StoredArray(container.reopen(url, stamp), name)


class ArrayViews:
    """What ``StoredArray.view`` is: call it, or index it."""

    def __init__(self, array: StoredArray) -> None:
        self._array = array

    def __call__(self) -> np.ndarray[Any, Any]:
        return self[...]

    def __getitem__(self, key: Any) -> np.ndarray[Any, Any]:
        array = self._array
        offsets, dims, rest = boxes.box_of(key, array.shape)
        if any(isinstance(part, np.ndarray) for part in rest):
            raise IndexError(f"view '{array.name}': a view is by numbers and slices; lists of "
                             "indices are loaded, array[...]")
        memory, shape, strides = array._core.view(array.name, array._kind, offsets, dims)
        if 0 in shape:
            empty: np.ndarray[Any, Any] = np.empty(shape, array.dtype)
            empty.flags.writeable = False
            return empty[rest]
        buffer: Any = memory
        whole: np.ndarray[Any, Any] = np.ndarray(shape, array.dtype, buffer, 0, strides)
        return whole[(*rest, ...)]  # no scalars


def bytes_of(values: np.ndarray[Any, Any]) -> Any:
    """Its memory, in the order that it has; the buffer protocol does not know all dtypes."""
    return values.reshape(-1, order="A").view(np.uint8)
