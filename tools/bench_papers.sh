#!/bin/bash
# bench_papers.sh [--quick] [--repeats N] [--times N] [--rows NAME…] [--profile] [--list] :
# installs, builds, makes the fast device and measures the experiments of the papers at a small size
# (bench/papers); with figures for all of a paper's it draws its page in docs/papers anew; with
# --profile of all rows, docs/papers/profiles.md; with N times the data, docs/papers/larger.md.
# Device and servers are taken down again, also after an interrupt.
# FAST_MIB: the device's size (default: 4096, or 1024 * N). Swap and checkpoints are made
# below BENCH_DIR (default: build/). Figures are kept in build/bench-papers.json, and what pages are
# drawn from in docs/papers/runs.json. Needs root, and perf for --profile.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/bench_lib.sh
table=bench/papers/table.py
export PYTHONDONTWRITEBYTECODE=1
list_rows "$table" "$@"
tools/install_packages.sh build bench engines kraken
[[ " $* " != *" --profile "* ]] || command -v perf >/dev/null || tools/install_packages.sh profile
need_root bench-papers "make a device, limit memory and switch on swap" FAST_MIB,BENCH_DIR "$@"
make --no-print-directory build
rivals=build/rivals
[[ " $* " == *" --rows "* && " $* " != *" s3d-"* ]] || tools/build_rivals.sh "$rivals"

# As many times the data need as many times the room.
times=1 previous=
for word in "$@"; do
  case $previous=$word in --times=*) times=$word ;; *=--times=*) times=${word#*=} ;; esac
  previous=$word
done
bench_dir=${BENCH_DIR:-build}
need_space bench-papers "$bench_dir" $((1024 * times)) BENCH_DIR
disk=$(mktemp -d "$(realpath "$bench_dir")/papers-XXXXXX")
at=$(mktemp -d)
take_down() {
  rm -rf "$disk"
  ! mountpoint -q "$at" || tools/fast_device.sh down "$at" || true
  rmdir "$at" 2>/dev/null || true
}
on_exit take_down
tools/fast_device.sh up "$at" "${FAST_MIB:-$((times > 4 ? 1024 * times : 4096))}"
runs=build/bench-papers.json
rm -f "$runs"
status=0
run_table python3 "$table" --folder "$at" --disk "$disk" --outcore build/bin/outcore \
  --programs "$rivals" --json-file "$runs" "$@" || status=$?
# What a row that could not be measured has, stays.
[[ ! -s $runs ]] || python3 bench/papers/page.py "$runs" docs/papers
exit "$status"
