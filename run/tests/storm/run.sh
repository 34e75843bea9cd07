#!/bin/bash
# run.sh FROM TO [ARGUMENT…] : the storms of these seeds, each under another one of some options of
# `outcore run`; goes on after one that fails, and tells them all at the end.
# OUTCORE, STORM: the programs. OPTIONS: of `outcore run`, instead of those by turns.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$here/../../.." && pwd)/build
outcore=${OUTCORE:-$build/bin/outcore}
storm=${STORM:-$build/bin/preload_storm}
from=$1 to=$2
shift 2
ways=(
  "--budget 1M --min-size 4k --alloc 64k --delivery messages"
  "--budget 1M --min-size 4k --alloc 64k --delivery in-thread"
  "--budget 512k --min-size 4k"
  "--budget 8M --page 64k --min-size 64k --alloc 1M"
  "--budget 64M --min-size 4k --alloc 64k"
  "--budget 1M --min-size 64k --alloc 256k --delivery in-thread"
)
failed=()
for ((seed = from; seed <= to; seed++)); do
  options=${OPTIONS-${ways[seed % ${#ways[@]}]}}
  SEEDS='' "$here/../preload/agree.sh" "$outcore" "$storm" "$options" --dir FOLDER \
    --seed "$seed" --threads $((1 + seed / ${#ways[@]} % 3)) "$@" || failed+=("$seed")
done
echo "seeds $from to $to: ${#failed[@]} failed: ${failed[*]-}"
((${#failed[@]} == 0))
