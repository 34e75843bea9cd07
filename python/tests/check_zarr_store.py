"""Zarr's own tests of stores, of OutcoreStore: with files that are read as they are, and with all
of them read through regions."""

import pytest
from zarr.core.buffer import cpu
from zarr.testing.store import StoreTests

from outcore.zarr import OutcoreStore


class _Checks(StoreTests):
    store_cls = OutcoreStore
    buffer_cls = cpu.Buffer
    min_bytes: int

    async def get(self, store, key):
        return self.buffer_cls.from_bytes((store.root / key).read_bytes())

    async def set(self, store, key, value):
        (store.root / key).parent.mkdir(parents=True, exist_ok=True)
        (store.root / key).write_bytes(value.to_bytes())

    @pytest.fixture
    def store_kwargs(self, tmp_path):
        return {"root": str(tmp_path), "min_bytes": self.min_bytes}

    @pytest.fixture
    async def open_kwargs(self, tmp_path):
        return {"root": tmp_path, "min_bytes": self.min_bytes}

    def test_store_repr(self, store):
        assert repr(store) == f"OutcoreStore({str(store.root)!r})"
        assert str(store) == f"outcore://{store.root.as_posix()}"

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing

    async def test_open_takes_what_the_class_takes(self, tmp_path):
        store = await OutcoreStore.open(tmp_path, min_bytes=self.min_bytes, read_only=True)
        assert store._min_bytes == self.min_bytes and store.read_only


class TestSmallFiles(_Checks):
    min_bytes = 1 << 16


class TestRegions(_Checks):
    min_bytes = 0
