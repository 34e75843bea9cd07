#!/bin/bash
# bench_dlm.sh [DIRECTORY…] : the DLM paper's matrix times a vector, data 4 × budget, against the
# time that the device takes to write and read as many bytes in sequence. Each DIRECTORY is on a
# device of its own (tools/fast_device.sh, tools/loop_device.sh make some); default: TMPDIR or
# /var/tmp. BUILD: build directory (build). BUDGET_MIB (256), RUNS (5; the median counts),
# COMPILER (gcc), and options of Outcore from the environment.
# Prints a line a directory; exit status 1 if an answer is wrong or the ratio is above 1.3.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
budget_mib=${BUDGET_MIB:-256}
runs=${RUNS:-5}
directories=("$@")
((${#directories[@]})) || directories=("${TMPDIR:-/var/tmp}")

# The largest matrix of doubles in 4 × budget.
n=$(awk -v mib="$budget_mib" 'BEGIN { print int(sqrt(4 * mib * 131072)) }')
bytes_mib=$((budget_mib * 4))
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$build/bin/occ" --cc="${COMPILER:-gcc}" -O2 -DN="$n" examples/04_matrix_vector.c \
  -o "$scratch/matrix_vector"

seconds() { # COMMAND…: its wall time
  local began=$EPOCHREALTIME
  "$@" >/dev/null
  awk -v from="$began" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.3f\n", to - from }'
}
median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }

write_and_read() { # FILE: in sequence, past the page cache
  dd if=/dev/zero of="$1" bs=1M count="$bytes_mib" oflag=direct conv=fsync status=none &&
    dd if="$1" of=/dev/null bs=1M iflag=direct status=none
}

status=0
for directory in "${directories[@]}"; do
  file=$directory/bench-dlm.$$
  : >"$scratch/device" && : >"$scratch/program"
  for ((run = 0; run < runs; run++)); do
    seconds write_and_read "$file" >>"$scratch/device"
    rm -f "$file"
    OUTCORE_BUDGET=${budget_mib}M OUTCORE_SCRATCH_DIR=$directory \
      seconds "$scratch/matrix_vector" >>"$scratch/program"
  done
  device=$(median <"$scratch/device")
  program=$(median <"$scratch/program")
  ratio=$(awk -v p="$program" -v d="$device" 'BEGIN { printf "%.2f", p / d }')
  echo "matrix_vector $directory: $bytes_mib MiB in $budget_mib MiB: $program s, device" \
    "$device s, $ratio ×"
  awk -v r="$ratio" 'BEGIN { exit r > 1.3 }' || status=1
done
exit "$status"
