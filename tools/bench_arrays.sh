#!/bin/bash
# bench_arrays.sh [--quick] [--repeats N] [--rows NAME…] [--size 1G] [--processes N…] [--json]
# [--list] : installs the libraries of parallel I/O, builds bench/rivals into build/rivals and
# prints its table: named arrays beside these libraries and plain files. The data is made in a
# folder below BENCH_DIR (default: build/), which is removed again, also after an interrupt. Runs
# are kept in build/bench-arrays.json. Needs root, or sudo, only to install. A library that cannot
# be installed is said in the table.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/bench_lib.sh
table=bench/rivals/table.py
export PYTHONDONTWRITEBYTECODE=1
list_rows "$table" "$@"

exec 3>&1
[[ " $* " != *" --json "* ]] || exec 1>&2 # the lines alone go to standard output
into=build/rivals
tools/build_rivals.sh "$into"

bench_dir=${BENCH_DIR:-build}
need_space bench-arrays "$bench_dir" 3072 BENCH_DIR
folder=$(mktemp -d "$(realpath "$bench_dir")/arrays-XXXXXX")
on_exit 'rm -rf "$folder"'

run_table python3 "$table" --programs "$into" --folder "$folder" \
  --json-file build/bench-arrays.json "$@" >&3
