#!/bin/bash
# written_together.sh OUTCORE PROGRAM : four processes that write one file under --share-writes have
# it together until they end: nobody hands it back before, and nobody is left out.
set -euo pipefail
outcore=$1 program=$2
[[ $(id -u) == 0 ]] || exit 77 # nobody else may make openers wait
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/outcore-together-XXXXXX")
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/data"
"$outcore" run --quiet --budget 4M --min-size 4k --share-writes --json "$folder/report.json" -- \
  "$program" "$folder/data" 8388608 2 sfdm
python3 - "$folder/report.json" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
ends = "the process ends, or becomes another program"
reasons = {entry["reason"] for entry in report["not_taken"]}
assert reasons <= {"handed back: " + ends}, reasons
kinds = [file["coherence"].split(";")[0] for file in report["files"]]
together = "written together with other processes of the buffer"
assert len(kinds) == 4 and kinds.count(together) >= 3, kinds
assert set(kinds) <= {together, "handed back to the kernel: " + ends}, kinds
END
