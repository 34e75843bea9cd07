#!/bin/bash
# shrink.sh OUTCORE STORM RUN_OPTIONS --seed N ARGUMENT… : the shortest storm of this seed that it
# finds to fail as well: first the steps behind are left out, then others by halves, quarters and so
# on. Prints the command that replays it. TRIES: how often one must agree to count as good (3).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tries=${TRIES:-3}
outcore=$1 storm=$2 run_options=$3
shift 3

fails() { # STEPS SKIPPED…
  local steps=$1 i skipped
  shift
  skipped=$(IFS=,; echo "$*")
  for ((i = 0; i < tries; i++)); do
    "$here/../preload/agree.sh" "$outcore" "$storm" "$run_options" --dir FOLDER \
      "${arguments[@]}" --steps "$steps" --skip "$skipped" >"$log" 2>&1 || return 0
  done
  return 1
}

arguments=("$@")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
steps=120
for ((i = 0; i < $#; i++)); do
  [[ ${arguments[i]} != --steps ]] || steps=${arguments[i + 1]}
done
skipped=()
if ! fails "$steps" "${skipped[@]}"; then
  echo "$tries runs of $steps steps agree: nothing to shrink"
  exit 1
fi
first=$(sed -n 's/.*MISMATCH seed [0-9]* step \([0-9]*\).*/\1/p' "$log" | head -n 1)
if [[ -n $first ]] && ((first + 1 < steps)) && fails $((first + 1)) "${skipped[@]}"; then
  steps=$((first + 1))
fi
# Steps begin..begin+size-1 are left out where it fails without them, too.
for ((size = steps / 2; size >= 1; size /= 2)); do
  for ((begin = 0; begin < steps; begin += size)); do
    more=()
    for ((i = begin; i < begin + size && i < steps; i++)); do
      [[ " ${skipped[*]-} " == *" $i "* ]] || more+=("$i")
    done
    ((${#more[@]})) || continue
    if fails "$steps" "${skipped[@]}" "${more[@]}"; then
      skipped+=("${more[@]}")
      echo "fails with $((steps - ${#skipped[@]})) of $steps steps"
    fi
  done
done
fails "$steps" "${skipped[@]}"
cat "$log"
echo "again: $here/../preload/agree.sh $outcore $storm '$run_options' --dir FOLDER" \
  "${arguments[*]} --steps $steps --skip $(IFS=,; echo "${skipped[*]}")"
