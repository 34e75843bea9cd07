#!/bin/bash
# loop_device.sh up MOUNTPOINT FILE SIZE_MIB | down MOUNTPOINT
# The disk below FILE as a device of its own: a loop device with direct I/O, so that no page is
# cached twice, and the usual read_ahead_kb of 128, so that mmap is no straw man. Makes FILE, and
# removes it again. Needs root.
set -euo pipefail
if (($# < 2)); then
  echo "usage: loop_device.sh up MOUNTPOINT FILE SIZE_MIB | down MOUNTPOINT" >&2
  exit 2
fi
action=$1 at=$2

case $action in
up)
  file=${3:?loop_device.sh: which file?} size_mib=${4:?loop_device.sh: how many MiB?}
  device=
  undo() {
    [[ -z $device ]] || losetup -d "$device" || true
    rm -f "$file"
  }
  trap undo ERR
  trap 'undo; exit 130' INT TERM
  # Written in full: a hole or an unwritten extent would answer reads without the disk.
  dd if=/dev/zero of="$file" bs=1M count="$size_mib" oflag=direct conv=fsync status=none
  device=$(losetup --find --show --direct-io=on "$file")
  echo 128 >"/sys/block/${device#/dev/}/queue/read_ahead_kb"
  mkfs.ext4 -q -m0 -O ^has_journal -E nodiscard "$device"
  mkdir -p "$at"
  mount -o noatime "$device" "$at"
  ;;
down)
  device=$(findmnt -no SOURCE "$at")
  file=$(losetup -nO BACK-FILE "$device")
  umount "$at"
  losetup -d "$device"
  rm -f "$file"
  ;;
*)
  echo "loop_device.sh: '$action' is neither up nor down" >&2
  exit 2
  ;;
esac
