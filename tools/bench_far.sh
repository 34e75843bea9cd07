#!/bin/bash
# bench_far.sh [--quick] [--repeats N] [--rows NAME…] [--list] : installs, builds, starts Redis
# servers, a Redis cluster and a small Ceph on this machine, and prints the table of bench/far:
# programs on far memory beside what network, servers and swap give. Everything is stopped again,
# also after an interrupt. Runs are kept in build/bench-far.json, figures in build/bench-far/. Swap
# and plain memory's files are made below BENCH_DIR (default: build/). Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/bench_lib.sh
table=bench/far/table.py
export PYTHONDONTWRITEBYTECODE=1
list_rows "$table" "$@"

tools/install_packages.sh build bench engines
need_root bench-far "limit memory and switch on swap" BENCH_DIR,JOBS "$@"
cmake -S . -B build -G Ninja >/dev/null
cmake --build build -j "${JOBS:-$(nproc)}" --target outcore_cli far_floor far_byte_writes

bench_dir=${BENCH_DIR:-build}
need_space bench-far "$bench_dir" 2048 BENCH_DIR
folder=$(mktemp -d "$(realpath "$bench_dir")/far-XXXXXX")
on_exit 'rm -rf "$folder"'

run_table python3 "$table" --programs "$PWD/build/bin" --folder "$folder" \
  --figures build/bench-far --json-file build/bench-far.json "$@"
