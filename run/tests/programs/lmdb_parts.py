"""lmdb_parts: one part of the life of an LMDB database; prints what it found.

Usage: lmdb_parts.py write|change|read FOLDER yes|no, the last for writemap
"""

import hashlib
import random
import sys

import lmdb

MAP_BYTES = 128 << 20  # longer than the file, as LMDB's users do
RECORDS = 36_000  # 48 MiB of pages
RECORDS_OF_A_COMMIT = 5_000
RANDOM_READS = 2_500


def key_of(number):
    return b"%08d" % number


def value_of(number, version):
    return hashlib.sha256(b"%d %d" % (number, version)).digest() * 32  # 1 KiB: 4 in a page


def put_all(environment, numbers, version):
    for first in range(0, len(numbers), RECORDS_OF_A_COMMIT):
        with environment.begin(write=True) as transaction:
            for number in numbers[first : first + RECORDS_OF_A_COMMIT]:
                transaction.put(key_of(number), value_of(number, version))


def change(environment):
    """Every ninth record is replaced, every tenth goes; what is undone changes none."""
    put_all(environment, range(0, RECORDS, 9), 2)
    with environment.begin(write=True) as transaction:
        for number in range(0, RECORDS, 10):
            transaction.delete(key_of(number))
    with environment.begin(write=True) as transaction:
        transaction.put(key_of(1), b"undone")
        transaction.abort()


def look(environment):
    digest, count, generator = hashlib.sha256(), 0, random.Random(11)
    with environment.begin(buffers=True) as transaction:
        for _ in range(RANDOM_READS):
            value = transaction.get(key_of(generator.randrange(RECORDS)))
            digest.update(b"none" if value is None else value)
        for key, value in transaction.cursor():
            digest.update(key)
            digest.update(value)
            count += 1
    print(count, digest.hexdigest())


def main(part, folder, writemap):
    is_reader = part == "read"
    environment = lmdb.open(folder, map_size=MAP_BYTES, writemap=writemap == "yes",
                            readonly=is_reader, lock=not is_reader)
    if part == "write":
        put_all(environment, range(RECORDS), 1)
    if part == "change":
        change(environment)
    look(environment)
    environment.close()


main(*sys.argv[1:])
