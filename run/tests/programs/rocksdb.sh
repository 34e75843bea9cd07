#!/bin/bash
# rocksdb.sh : db_bench writes and reads its tables through many small maps that come and go.
BUDGET=4M MIN_SIZE=64K
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs db_bench sst_dump ldb

# work DATABASE RUN…
work() {
  "${@:2}" db_bench --db="$1" --benchmarks=fillrandom,compact,readrandom --num=100000 --seed=1 \
    --value_size=200 --mmap_read=1 --mmap_write=1 --compression_type=none --reads=10000 \
    --write_buffer_size=4194304 --threads=1 --histogram=0 >"$1.txt" 2>"$1.log" ||
    fail "db_bench: $(tail -c 1500 "$1.log")"
}
found() { grep -o '([0-9]* of [0-9]* found)' "$1"; }
content() { ldb --db="$1" dump --hex | md5sum; }

work plain env
work under rt --
expect_taken '*/under/*.sst'
expect_equal "found" "$(found plain.txt)" "$(found under.txt)"
expect_equal "content" "$(content plain)" "$(content under)"
sst_dump --command=verify --file=under >verified.txt 2>&1 || fail "sst_dump: $(tail verified.txt)"
if grep -iE 'corrupt|error|fail' verified.txt; then fail "sst_dump found errors"; fi
echo "verified: $(grep -c 'The file is ok' verified.txt) tables"
