#!/bin/bash
# bench_doors.sh [--quick] [--repeats N] [--rows NAME…] [--papers] [--list] : installs, builds,
# makes a direct loop device on the disk below BENCH_DIR (default: build/) and prints the table of
# bench/doors: programs under `outcore run`, and the Python package, beside the kernel's mmap. The
# device is taken down again, also after an interrupt. Runs are kept in build/bench-doors.json; of
# rows of docs/papers/programs.md what it is drawn from is kept in docs/papers/programs.json.
# Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/bench_lib.sh
table=bench/doors/table.py
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
list_rows "$table" "$@"

tools/install_packages.sh build bench programs
need_root bench-doors "make a device and limit memory" BENCH_DIR,DISK_MIB "$@"
make --no-print-directory build

# The environments that the tests of the package and of the programs use.
make_environments() {
  local wanted=run/tests/programs/requirements.txt venv=build/programs-venv
  tools/test_python.sh --version || return 1
  if ! cmp -s "$wanted" "$venv/requirements.txt"; then
    rm -rf "$venv"
    python3 -m venv "$venv" &&
      "$venv/bin/pip" install --quiet --only-binary :all: -r "$wanted" &&
      cp "$wanted" "$venv/requirements.txt" || return 1
  fi
  # What only rows that are named need is installed when one of them is.
  wanted=bench/doors/requirements.txt
  if [[ " $* " == *" --papers "* || " $* " == *" ycsb-rocksdb-"* || " $* " == *" llama-"* ]] &&
    ! cmp -s "$wanted" "$venv/named-rows.txt"; then
    "$venv/bin/pip" install --quiet --only-binary :all: -r "$wanted" &&
      cp "$wanted" "$venv/named-rows.txt"
  fi
}
echo "-- the Python packages"
make_environments "$@" >build/bench-doors.log 2>&1 || {
  tail -n 5 build/bench-doors.log >&2
  echo "bench-doors: the Python packages cannot be installed (build/bench-doors.log)" >&2
  exit 1
}
library=$PWD/build/bin/libmmap_random.so
cc -O2 -shared -fPIC -o "$library" bench/doors/mmap_random.c

disk_mib=${DISK_MIB:-5120}
bench_dir=${BENCH_DIR:-build}
need_space bench-doors "$bench_dir" $((disk_mib + 256)) BENCH_DIR
at=$(mktemp -d)
image=$(realpath "$bench_dir")/doors.$$.img
# shellcheck disable=SC2317  # the trap calls it
take_down() {
  ! mountpoint -q "$at" || tools/loop_device.sh down "$at" || true
  remove_image "$image"
  rmdir "$at" 2>/dev/null || true
}
on_exit take_down

echo "-- the device: $disk_mib MiB on the disk, direct, read_ahead_kb 128"
tools/loop_device.sh up "$at" "$image" "$disk_mib"
runs=build/bench-doors.json
rm -f "$runs"
status=0
run_table python3 "$table" --folder "$at" --outcore "$PWD/build/bin/outcore" \
  --python "$PWD/build/python/venv/bin/python" \
  --programs-python "$PWD/build/programs-venv/bin/python" --mmap-random "$library" \
  --json-file "$runs" "$@" || status=$?
[[ ! -s $runs ]] || python3 bench/doors/page.py "$runs" docs/papers
exit "$status"
