"""ycsb_stores: the databases of ycsb_records.py, each by its own package.

Each says how many RECORDS_OF_A_PAGE there are, which FILES are mapped, their MIN_SIZE for
`outcore run` (None: its default), and how much it keeps in memory of what is written,
WRITTEN_BYTES. It can `put_back` what was loaded. Open, by ``with``, it has `load` (of the next of
the sorted records), `begin` (a transaction, which gets, puts and deletes), `insert` and `scan`.
What was written is durable when it is closed.
"""

import contextlib
import os
import pathlib
import shutil

PAGE = 4096


class Lmdb:
    RECORDS_OF_A_PAGE, FILES, MIN_SIZE, WRITTEN_BYTES = 3, "data.mdb", None, 0

    def __init__(self, folder, records, how):
        import lmdb
        # With room for updates, which LMDB writes to other pages. readahead=False: LMDB itself
        # says MADV_RANDOM.
        size_bytes = records // self.RECORDS_OF_A_PAGE * PAGE
        self._environment = lmdb.open(str(folder), map_size=2 * size_bytes + (64 << 20),
                                      sync=False, lock=False, readahead=how != "random")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._environment.sync(True)
        self._environment.close()

    def load(self, records):
        with self.begin(True) as transaction:
            for key, value in records:
                transaction.put(key, value, append=True)

    def begin(self, is_write):
        return self._environment.begin(write=is_write)

    def insert(self, transaction, key, value):
        return transaction.put(key, value, overwrite=False)

    def scan(self, transaction, key=b""):
        cursor = transaction.cursor()
        return cursor.iternext() if cursor.set_range(key) else iter(())

    @classmethod
    def put_back(cls, folder, records, changed):
        """changed: pairs of a key and the value that was loaded; None: there was none."""
        with cls(folder, records, "default") as store, store.begin(True) as transaction:
            for key, value in changed:
                if value is None:
                    transaction.delete(key)
                else:
                    transaction.put(key, value)


class RocksDb:
    """Its tables are mapped, and not compressed: a compressed block is unpacked into memory, and
    it would be this copy that is read again, from a cache of RocksDB's own. So there is no cache
    of blocks, either. What is written goes to memory and a log, and to new tables when the part in
    memory is full, which is small here, as it counts against the limit."""

    RECORDS_OF_A_PAGE, FILES = 4, "*.sst"
    MIN_SIZE = "1M"  # its tables are of 50 MiB each
    MEMORY_TABLE_BYTES = 4 << 20
    WRITTEN_BYTES = 2 * MEMORY_TABLE_BYTES  # one is filled while another becomes a file
    LOADED = "loaded"  # a folder in that of the database, with its files as they were loaded

    def __init__(self, folder, records, how):
        import rocksdict
        self._rocksdict, self._folder = rocksdict, pathlib.Path(folder)
        self._options = self._options_of(how)
        self._database = rocksdict.Rdict(str(folder), self._options)

    def _options_of(self, how):
        options = self._rocksdict.Options(raw_mode=True)
        options.set_allow_mmap_reads(True)
        options.set_compression_type(self._rocksdict.DBCompressionType.none())
        options.set_write_buffer_size(self.MEMORY_TABLE_BYTES)
        blocks = self._rocksdict.BlockBasedOptions()
        blocks.disable_cache()
        options.set_block_based_table_factory(blocks)
        if how == "readahead":  # RocksDB says MADV_RANDOM unless it is told not to
            options.set_advise_random_on_open(False)
        return options

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._database.close()

    def load(self, records):
        """By a table of its own, at the bottom, as a bulk load makes it."""
        path = str(self._folder / "new.sst")
        writer = self._rocksdict.SstFileWriter(self._options)
        writer.open(path)
        for key, value in records:
            writer[key] = value
        writer.finish()
        self._database.ingest_external_file([path])  # copies it
        os.unlink(path)

    def begin(self, is_write):
        """A single write is a transaction as it is; nothing else runs beside it."""
        return contextlib.nullcontext(self._database)

    def insert(self, transaction, key, value):
        transaction.put(key, value)
        return True  # `restore` counts the records

    def scan(self, transaction, key=None):
        return transaction.items(from_key=key)

    @classmethod
    def put_back(cls, folder, records, changed):
        """Tables never change, so those of the first time are kept, by a second name."""
        folder = pathlib.Path(folder)
        loaded = folder / cls.LOADED
        used = [path for path in folder.iterdir() if path != loaded]
        if not loaded.exists():
            loaded.mkdir()
            for path in used:
                path.rename(loaded / path.name)
            used = []
        for path in used:
            path.unlink()
        for path in loaded.iterdir():
            if path.suffix == ".sst":
                os.link(path, folder / path.name)
            else:
                shutil.copy(path, folder)


STORES = {"lmdb": Lmdb, "rocksdb": RocksDb}
