#!/bin/bash
# lmdb-python.sh : LMDB writes, changes and reads a database, with its map writable and not.
BUDGET=12M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs_python

for writemap in no yes; do
  for part in write change read; do
    plain=$("$PYTHON" "$here/lmdb_parts.py" "$part" "plain-$writemap" "$writemap")
    # Other processes hold the file's locks in lock.mdb; only the data may be taken.
    under=$(rt -- "$PYTHON" "$here/lmdb_parts.py" "$part" "under-$writemap" "$writemap")
    expect_taken "*/under-$writemap/data.mdb"
    expect_equal "writemap $writemap, $part" "$plain" "$under"
  done
  # What other processes find in the file that Outcore wrote.
  under=$("$PYTHON" "$here/lmdb_parts.py" read "under-$writemap" "$writemap")
  expect_equal "writemap $writemap, read plainly afterwards" "$plain" "$under"
done
