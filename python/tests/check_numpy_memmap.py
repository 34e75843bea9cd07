"""NumPy's own tests of memmap, with outcore.memmap in its place.

What differs by intent is told in docs/reference/python.md, and must differ here.
"""

import pytest
from numpy._core.tests import test_memmap

import outcore

_DIFFERS = {
    "test_slicing_keeps_references": "slices are Views, which have no _mmap",
    "test_view": "an Array is no ndarray, and so no base of its views",
    "test_getitem": "a slice is a View, and no memmap",
    "test_memmap_subclass": "results are plain ndarrays, of subclasses, too",
}


@pytest.fixture(autouse=True)
def ours(monkeypatch):
    monkeypatch.setattr(test_memmap, "memmap", outcore.memmap)


class TestMemmap(test_memmap.TestMemmap):
    pass


for _name, _why in _DIFFERS.items():
    setattr(TestMemmap, _name, pytest.mark.xfail(strict=True, reason=_why)(
        getattr(test_memmap.TestMemmap, _name)))
