"""records: an LMDB database that is read at random. Each part prints a line of JSON.

Usage: records.py make FOLDER BYTES, or records.py read FOLDER default|random READS
"""

import hashlib
import json
import random
import resource
import sys
import time
import zlib

import lmdb

PAGE, RECORDS_OF_A_PAGE = 4096, 3
RECORDS_OF_A_COMMIT = 50_000


def key_of(number):
    return b"%08d" % number


def value_of(number):
    return hashlib.sha256(b"%d" % number).digest() * 32  # 1 KiB: three in a page


def make(folder, size_bytes):
    count = size_bytes // PAGE * RECORDS_OF_A_PAGE
    with lmdb.open(folder, map_size=2 * size_bytes + (64 << 20), sync=False) as environment:
        for first in range(0, count, RECORDS_OF_A_COMMIT):
            with environment.begin(write=True) as transaction:
                for number in range(first, min(first + RECORDS_OF_A_COMMIT, count)):
                    transaction.put(key_of(number), value_of(number), append=True)
        environment.sync(True)


def read(folder, has_readahead, reads):
    generator, checksum = random.Random(11), 0
    began = time.perf_counter()
    # readahead=False: LMDB itself says MADV_RANDOM.
    with lmdb.open(folder, readonly=True, lock=False, readahead=has_readahead) as environment:
        count = environment.stat()["entries"]
        numbers = [generator.randrange(count) for _ in range(reads)]
        with environment.begin(buffers=True) as transaction:
            for number in numbers:
                checksum = zlib.crc32(transaction.get(key_of(number)), checksum)
    seconds = time.perf_counter() - began
    wanted = 0
    for number in numbers:
        wanted = zlib.crc32(value_of(number), wanted)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"seconds": seconds, "work": reads, "unit": "records/s",
                      "is_right": checksum == wanted, "answer": checksum,
                      "rss_bytes": used.ru_maxrss * 1024, "user_seconds": used.ru_utime,
                      "system_seconds": used.ru_stime}))


def main(what, folder, how, reads="0"):
    if what == "make":
        make(folder, int(how))
    else:
        read(folder, how == "default", int(reads))


main(*sys.argv[1:])
