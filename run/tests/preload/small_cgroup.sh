#!/bin/bash
# small_cgroup.sh OUTCORE PROGRAMS : programs in a cgroup with little memory. With the budget that
# `outcore run` finds right there: one writes four times as much to a mapped file, one allocates
# until nothing is left. With a budget that leaves the page cache next to nothing: one writes a file
# by calls that it has mapped for reading. None is killed, hangs or loses a byte. Exit status 77: no
# cgroup can be made here.
set -uo pipefail
outcore=$1 programs=$2
limit=$(dirname "$0")/../../../tools/memory_limit.sh
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/outcore-cgroup-XXXXXX")
trap 'rm -rf "$folder"' EXIT

if ! "$limit" 64 true 2>"$folder/why"; then
  cat "$folder/why"
  exit 77
fi
status=0
for words in "--alloc 64k -- full_disk $folder $((256 << 20)) msync" \
  "--alloc 64k -- no_heap_memory $folder $((4 << 20))" \
  "--budget 57M -- written_by_calls $folder $((256 << 20)) mapped"; do
  echo "$words"
  # shellcheck disable=SC2086  # words
  "$limit" 64 timeout --kill-after=5 120 "$outcore" run --quiet --min-size 4k ${words%% -- *} -- \
    "$programs"/preload_${words##* -- } >"$folder/out" 2>"$folder/err"
  code=$?
  tail -n 2 "$folder/out"
  cat "$folder/err"
  ((code == 0)) || status=1
done
exit $status
