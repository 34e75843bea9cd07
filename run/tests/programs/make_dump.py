"""make_dump: records in the format of mdb_dump, on standard output.

Usage: make_dump.py RECORDS (of 1 KiB)
"""

import hashlib
import sys

print("VERSION=3\nformat=bytevalue\ntype=btree\nmapsize=268435456\nHEADER=END")
for number in range(int(sys.argv[1])):
    print(" " + (b"%08d" % number).hex())
    print(" " + hashlib.sha256(b"%d" % number).hexdigest() * 32)
print("DATA=END")
