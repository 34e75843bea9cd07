#!/bin/bash
# lmdb-tools.sh : mdb_load, mdb_copy (which writes straight from the map), mdb_dump.
BUDGET=12M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs mdb_load mdb_copy mdb_dump

python3 "$here/make_dump.py" 36000 >in.txt # 48 MiB of pages
rt -- mdb_load -n -f in.txt under.mdb
expect_taken '*/under.mdb'
records() { sed -n '/HEADER=END/,$p' "$1" | md5sum; }
mdb_dump -n under.mdb >plain.txt
expect_equal "what was loaded" "$(records in.txt)" "$(records plain.txt)"
rt -- mdb_dump -n under.mdb >under.txt
expect_taken '*/under.mdb'
expect_same_bytes "dumped" plain.txt under.txt

for options in -n "-n -c"; do
  # shellcheck disable=SC2086  # options are words
  {
    mdb_copy $options under.mdb plain-copy.mdb
    rt -- mdb_copy $options under.mdb under-copy.mdb
  }
  expect_taken '*/under.mdb'
  expect_same_bytes "copied, $options" plain-copy.mdb under-copy.mdb
  rm -- *-copy.mdb
done
