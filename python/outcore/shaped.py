"""Shaped: what follows from a shape and a dtype, as an ndarray has it."""

from __future__ import annotations

import math
from typing import Any, Generic, TypeVar

import numpy as np


Item = TypeVar("Item", bound=np.generic)  # of an array


class Shaped:
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize


class ShapedAsOpened(Shaped, Generic[Item]):
    """The same of an array over elements. An ndarray takes another shape or dtype in place; of what
    is stored by both that would be half of the truth."""

    _elements: Shaped

    @property
    def shape(self) -> tuple[int, ...]:
        return self._elements.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        raise AttributeError("the shape of an array in a store is not assigned: take a view, "
                             "a[...].reshape(shape), or change it with the file's length by "
                             "a.resize(shape)")

    @property
    def dtype(self) -> np.dtype[Item]:
        return self._elements.dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        raise AttributeError("the dtype of an array in a store is not assigned: take a view, "
                             "a[...].view(dtype), or open it with dtype=")
