#!/bin/bash
# bench_far.sh [--quick] [--repeats N] [--rows NAME…] [--list] : installs, builds, starts Redis
# servers, a Redis cluster and a small Ceph on this machine, and prints the table of bench/far:
# programs on far memory beside what network, servers and swap give. Everything is stopped again,
# also after an interrupt. Runs are kept in build/bench-far.json, figures in build/bench-far/. Swap
# and plain memory's files are made below BENCH_DIR (default: build/). Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
table=bench/far/table.py
export PYTHONDONTWRITEBYTECODE=1
for option in "$@"; do
  case $option in --list | --help | -h) exec python3 "$table" "$@" ;; esac
done
python3 "$table" --list "$@" >/dev/null # says what is wrong with the options

tools/install_packages.sh build bench engines
if ((EUID != 0)); then
  command -v sudo >/dev/null || {
    echo "bench-far: needs root to limit memory and switch on swap: run as root," \
      "or install sudo" >&2
    exit 1
  }
  exec sudo --preserve-env=BENCH_DIR,JOBS tools/bench_far.sh "$@"
fi
cmake -S . -B build -G Ninja >/dev/null
cmake --build build -j "${JOBS:-$(nproc)}" --target outcore_cli far_floor far_byte_writes

bench_dir=${BENCH_DIR:-build}
disk_mib=2048
free_mib=$(df --output=avail -m "$bench_dir" | tail -n 1)
if ((free_mib < disk_mib)); then
  echo "bench-far: $((free_mib)) MiB free in $bench_dir, $disk_mib are needed: set BENCH_DIR" >&2
  exit 1
fi
folder=$(mktemp -d "$(realpath "$bench_dir")/far-XXXXXX")
running=
# shellcheck disable=SC2317  # the trap calls it
take_down() {
  trap '' INT TERM
  [[ -z $running ]] || { kill "$running" && wait "$running"; } 2>/dev/null || true
  rm -rf "$folder"
}
trap take_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

python3 "$table" --programs "$PWD/build/bin" --folder "$folder" --figures build/bench-far \
  --json-file build/bench-far.json "$@" &
running=$!
status=0
wait "$running" || status=$?
running=
exit "$status"
