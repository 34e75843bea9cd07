"""numpy_arrays: makes, changes, grows and frees arrays of 120 MB, and prints sums of them."""

import numpy as np

COUNT = 15_000_000

ones = np.ones(COUNT)
print(ones.sum(), end=" ")
ones *= 3
ones[np.random.default_rng(1).integers(0, COUNT, 750)] = 0
print(ones.sum(), end=" ")
del ones
numbers = np.arange(COUNT, dtype="i8")
print(numbers[::-1][:COUNT // 2].sum(), end=" ")
numbers.resize(COUNT + (1 << 20), refcheck=False)  # realloc
print(numbers.sum(), numbers[-5:], end=" ")
zeros = np.zeros((2048, 4096), dtype="f4")  # calloc
zeros[::2] = 1
print(zeros.sum(), zeros[:, 7].sum(), np.partition(numbers[: 1 << 22], 1 << 21)[1 << 21])
