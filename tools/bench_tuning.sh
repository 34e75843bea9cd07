#!/bin/bash
# bench_tuning.sh [--quick] [--repeats N] [--rows NAME…] [--list] : installs, builds, makes the fast
# device and prints the table of bench/tuning: Outcore's default settings beside the best that a
# sweep finds by hand, and beside the kernel's mmap. The device is taken down again, also after an
# interrupt. FAST_MIB: its size. Figures are kept in build/bench-tuning.json. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/bench_lib.sh
table=bench/tuning/table.py
export PYTHONDONTWRITEBYTECODE=1
list_rows "$table" "$@"
tools/install_packages.sh build bench
need_root bench-tuning "make a device and limit memory" FAST_MIB "$@"
make --no-print-directory build

at=$(mktemp -d)
take_down() {
  ! mountpoint -q "$at" || tools/fast_device.sh down "$at" || true
  rmdir "$at" 2>/dev/null || true
}
on_exit take_down
tools/fast_device.sh up "$at" "${FAST_MIB:-4096}"
rm -f build/bench-tuning.json
python3 "$table" --folder "$at" --outcore build/bin/outcore --json-file build/bench-tuning.json "$@"
