#!/bin/bash
# bench.sh [OPTION…] : installs, builds, sets up two devices and runs `outcore bench table`, which
# takes the options. The fast device is memory (zram), the disk a direct loop device on the disk
# below BENCH_DIR (default: build/). Both are taken down again, also after an interrupt.
# FAST_MIB and DISK_MIB: their sizes. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/bench_lib.sh
tools/install_packages.sh build bench
need_root bench "make devices and limit memory" BENCH_DIR,FAST_MIB,DISK_MIB "$@"
make --no-print-directory build

fast_mib=${FAST_MIB:-4096}
disk_mib=${DISK_MIB:-5120}
bench_dir=${BENCH_DIR:-build}
available_mib=$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
if ((available_mib < fast_mib + 2048)); then
  echo "bench: $available_mib MiB of memory available; the fast device takes $fast_mib MiB and" \
    "2 GiB must be left: set FAST_MIB lower" >&2
  exit 1
fi
need_space bench "$bench_dir" $((disk_mib + 256)) "BENCH_DIR or DISK_MIB"

at=$(mktemp -d)
image=$(realpath "$bench_dir")/disk.$$.img
take_down() {
  ! mountpoint -q "$at/disk" || tools/loop_device.sh down "$at/disk" || true
  ! mountpoint -q "$at/fast" || tools/fast_device.sh down "$at/fast" || true
  remove_image "$image"
  rmdir "$at/disk" "$at/fast" "$at" 2>/dev/null || true
}
on_exit take_down

tools/fast_device.sh up "$at/fast" "$fast_mib"
tools/loop_device.sh up "$at/disk" "$image" "$disk_mib"
build/bin/outcore bench table --fast "$at/fast" --disk "$at/disk" \
  --json-file build/bench-table.json "$@"
