#!/bin/bash
# bench.sh [OPTION…] : installs, builds, sets up two devices and runs `outcore bench table`, which
# takes the options. The fast device is memory (zram), the disk a direct loop device on the disk
# below BENCH_DIR (default: build/). Both are taken down again, also after an interrupt.
# FAST_MIB and DISK_MIB: their sizes. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install_packages.sh build bench
if ((EUID != 0)); then
  command -v sudo >/dev/null || {
    echo "bench: needs root to make devices and limit memory: run as root, or install sudo" >&2
    exit 1
  }
  exec sudo --preserve-env=BENCH_DIR,FAST_MIB,DISK_MIB "$0" "$@"
fi
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
free_mib=$(df --output=avail -m "$bench_dir" | tail -n 1)
if ((free_mib < disk_mib + 256)); then
  echo "bench: $((free_mib)) MiB free in $bench_dir, $disk_mib are needed:" \
    "set BENCH_DIR or DISK_MIB" >&2
  exit 1
fi

at=$(mktemp -d)
image=$(realpath "$bench_dir")/disk.$$.img
take_down() {
  local device
  trap '' INT TERM
  ! mountpoint -q "$at/disk" || tools/loop_device.sh down "$at/disk" || true
  ! mountpoint -q "$at/fast" || tools/fast_device.sh down "$at/fast" || true
  # An interrupt between the steps of loop_device.sh leaves a device without a mount.
  device=$(losetup -nO NAME -j "$image" 2>/dev/null || true)
  [[ -z $device ]] || losetup -d "$device" || true
  rmdir "$at/disk" "$at/fast" "$at" 2>/dev/null || true
  rm -f "$image"
}
trap take_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

tools/fast_device.sh up "$at/fast" "$fast_mib"
tools/loop_device.sh up "$at/disk" "$image" "$disk_mib"
build/bin/outcore bench table --fast "$at/fast" --disk "$at/disk" \
  --json-file build/bench-table.json "$@"
