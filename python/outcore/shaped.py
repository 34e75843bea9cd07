"""Shaped: what follows from a shape and a dtype, as an ndarray has it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


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
