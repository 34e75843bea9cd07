#!/bin/bash
# mapped_again.sh OUTCORE PROGRAM RUN_OPTIONS : a file that is mapped, read and unmapped eight times
# is read from the device three times at most: its pages stay from the second end on.
set -euo pipefail
outcore=$1 program=$2 run_options=$3
if [[ $run_options == *messages* && $(id -u) != 0 ]]; then
  echo "skipped: only root is sure to get faults by messages"
  exit 77
fi
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/outcore-again-XXXXXX")
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/data"
# shellcheck disable=SC2086  # options are words
"$outcore" run --quiet --min-size 4k --json "$folder/report.json" $run_options -- \
  "$program" "$folder/data" 8388608 read
python3 - "$folder/report.json" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
(file,) = report["files"]
pages = file["file_bytes"] // 4096
assert pages == 2048, pages
assert pages <= file["fills"] <= 3 * pages, (file["fills"], report["not_taken"])
END
