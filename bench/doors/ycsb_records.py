"""ycsb_records: the mixes A to F of the Yahoo! Cloud Serving Benchmark on a database, one thread.

Usage: ycsb_records.py make DATABASE FOLDER RECORDS
       ycsb_records.py run DATABASE FOLDER RECORDS ADVICE MIX zipf|uniform OPERATIONS
       ycsb_records.py restore DATABASE FOLDER RECORDS UPDATES INSERTS

DATABASE: of STORES in ycsb_stores.py; it is made with so many records. ADVICE: of its mapped
files: default (the database's own), readahead or random.

`run` prints a line of JSON. `restore` verifies all records, of which so many were updated and
inserted since the last time, and makes the database as it was: no other records, all at version 0.
"""

import hashlib
import json
import math
import random
import resource
import sys
import time
import zlib

from ycsb_stores import STORES

RECORDS_OF_A_LOAD = 50_000
FIELDS, FIELD_BYTES, VERSION_BYTES = 10, 100, 8
SCAN_RECORDS_MAX, THETA, SEED = 100, 0.99, 11
MIXES = {"A": {"update": 50}, "B": {"update": 5}, "C": {}, "D": {"insert": 5},
         "E": {"insert": 5, "scan": 95}, "F": {"change": 50}}  # per cent; the others are reads


def key_of(number):
    """A hash, as YCSB's keys are: the order of keys is not that of records."""
    return hashlib.sha256(b"%d" % number).digest()[:8] + number.to_bytes(8, "big")


def value_of(number, version):
    fields = (hashlib.sha256(b"%d %d %d" % (number, version, field)).digest() * 4
              for field in range(FIELDS))
    return version.to_bytes(VERSION_BYTES, "big") + b"".join(f[:FIELD_BYTES] for f in fields)


def version_of(key, value):
    """The one version that all fields have; -1 if they do not."""
    version = int.from_bytes(value[:VERSION_BYTES], "big")
    number = int.from_bytes(key[8:], "big")
    return version if key == key_of(number) and value == value_of(number, version) else -1


def make(database, folder, records):
    numbers = sorted(range(records), key=key_of)
    with STORES[database](folder, records, "default") as store:
        for first in range(0, records, RECORDS_OF_A_LOAD):
            store.load((key_of(number), value_of(number, 0))
                       for number in numbers[first:first + RECORDS_OF_A_LOAD])
    STORES[database].put_back(folder, records, [])


class Choice:
    """Numbers of records. Zipf after Gray et al. (1994), as YCSB has it."""

    def __init__(self, generator, mix, distribution, loaded):
        self._random, self._loaded = generator, loaded
        self._is_uniform, self._is_latest = distribution == "uniform", mix == "D"
        self._zeta = sum(1 / i**THETA for i in range(1, loaded + 1))
        self._eta = (1 - (2 / loaded)**(1 - THETA)) / (1 - (1 + 0.5**THETA) / self._zeta)
        # A permutation, so that the popular ranks lie anywhere, and each record is some rank's.
        self._step = next(step for step in range(int(loaded * 0.618) + 1, 2 * loaded + 2)
                          if math.gcd(step, loaded) == 1)

    def _rank(self):
        at = self._random.random()
        if at * self._zeta < 1 + 0.5**THETA:
            return int(at * self._zeta >= 1) % self._loaded
        rank = int(self._loaded * (self._eta * at - self._eta + 1)**(1 / (1 - THETA)))
        return min(rank, self._loaded - 1)

    def number(self, count):
        if self._is_uniform:
            return self._random.randrange(count)
        if self._is_latest:
            return count - 1 - self._rank()
        return self._rank() * self._step % self._loaded


def plan(mix, distribution, loaded, operations):
    """What is done, drawn before the time starts: (operation, record, records of a scan)."""
    generator = random.Random(SEED)
    choice, count, planned = Choice(generator, mix, distribution, loaded), loaded, []
    shares = MIXES[mix]
    kinds = [kind for kind, share in shares.items() for _ in range(share)]
    kinds += ["read"] * (100 - len(kinds))
    for _ in range(operations):
        kind = generator.choice(kinds)
        number = count if kind == "insert" else choice.number(count)
        count += kind == "insert"
        length = generator.randint(1, SCAN_RECORDS_MAX) if kind == "scan" else 0
        planned.append((kind, number, length))
    return planned


class Session:
    """Each operation is a transaction. What reads see is verified at once, in the time that is
    taken, the same in each memory."""

    def __init__(self, store):
        self._store = store
        self.wrong = self.updates = self.answer = 0

    def _see(self, key, value):
        self.wrong += value is None or version_of(key, value) < 0
        self.answer = zlib.crc32(key, self.answer)

    def do(self, kind, number, length):
        key = key_of(number)
        with self._store.begin(kind not in ("read", "scan")) as transaction:
            if kind == "insert":
                self.wrong += not self._store.insert(transaction, key, value_of(number, 0))
            elif kind == "scan":
                self._scan(transaction, key, length)
            else:
                value = transaction.get(key)
                if kind != "update":
                    self._see(key, value)
                if kind != "read" and value is not None:
                    version = int.from_bytes(value[:VERSION_BYTES], "big")
                    transaction.put(key, value_of(number, version + 1))
                    self.updates += 1

    def _scan(self, transaction, key, length):
        last, first = b"", None
        for found, value in self._store.scan(transaction, key):
            first = first or found
            self.wrong += found <= last
            self._see(found, value)
            last, length = found, length - 1
            if length == 0:
                break
        self.wrong += first != key


def run(database, folder, records, how, mix, distribution, operations):
    planned = plan(mix, distribution, records, operations)
    with STORES[database](folder, records, how) as store:
        session = Session(store)
        began = time.perf_counter()
        for one in planned:
            session.do(*one)
        seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"seconds": seconds, "work": operations, "unit": "operations/s",
                      "is_right": session.wrong == 0, "answer": session.answer,
                      "updates": session.updates,
                      "inserts": sum(kind == "insert" for kind, _, _ in planned),
                      "rss_bytes": used.ru_maxrss * 1024, "user_seconds": used.ru_utime,
                      "system_seconds": used.ru_stime}))


def restore(database, folder, records, updates, inserts):
    """Exit status 1, with a line, if a record is wrong or lost, or an update is."""
    changed, found, count = [], 0, 0
    with STORES[database](folder, records, "default") as store, store.begin(False) as transaction:
        for key, value in store.scan(transaction):
            version, number = version_of(key, value), int.from_bytes(key[8:], "big")
            if version < 0 or number >= records + inserts:
                raise SystemExit(f"record {number} is not whole")
            count, found = count + 1, found + version
            if version != 0 or number >= records:
                changed.append((key, value_of(number, 0) if number < records else None))
    if found != updates or count != records + inserts:
        raise SystemExit(f"there are {count} records of {records + inserts}, "
                         f"with {found} updates of {updates}")
    STORES[database].put_back(folder, records, changed)


def main(what, database, folder, records, *words):
    if what == "make":
        make(database, folder, int(records))
    elif what == "run":
        run(database, folder, int(records), *words[:3], int(words[3]))
    else:
        restore(database, folder, int(records), *map(int, words))


if __name__ == "__main__":
    main(*sys.argv[1:])
