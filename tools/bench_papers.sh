#!/bin/bash
# bench_papers.sh [--quick] [--repeats N] [--rows NAME…] [--list] : installs, builds, makes the fast
# device and measures the experiments of the papers at a small size (bench/papers); with figures for
# all of them it draws docs/papers anew. The device is taken down again, also after an interrupt.
# FAST_MIB: its size. Figures are kept in build/bench-papers.json. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/bench_lib.sh
table=bench/papers/table.py
export PYTHONDONTWRITEBYTECODE=1
list_rows "$table" "$@"
tools/install_packages.sh build bench
need_root bench-papers "make a device and limit memory" FAST_MIB "$@"
make --no-print-directory build

at=$(mktemp -d)
take_down() {
  ! mountpoint -q "$at" || tools/fast_device.sh down "$at" || true
  rmdir "$at" 2>/dev/null || true
}
on_exit take_down
tools/fast_device.sh up "$at" "${FAST_MIB:-4096}"
runs=build/bench-papers.json
rm -f "$runs"
run_table python3 "$table" --folder "$at" --outcore build/bin/outcore --json-file "$runs" "$@"
python3 bench/papers/page.py "$runs" docs/papers
