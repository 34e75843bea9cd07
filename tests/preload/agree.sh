#!/bin/bash
# agree.sh OUTCORE PROGRAM RUN_OPTIONS ARGUMENTS… : runs a program of programs/ plainly and under
# `outcore run RUN_OPTIONS`; output and exit status must be the same. FOLDER in an argument becomes
# a folder of each run; SEEDS=FROM:TO in the environment runs it for each seed.
set -uo pipefail
outcore=$1 program=$2 run_options=$3
shift 3
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/outcore-agree-XXXXXX")
trap 'rm -rf "$folder"' EXIT

run_both() { # ARGUMENTS…
  local way status
  for way in plain under; do
    mkdir -p "$folder/$way/data"
    local command=("$program" "${@//FOLDER/$folder/$way/data}")
    # shellcheck disable=SC2086  # options are words
    [[ $way == plain ]] || command=("$outcore" run --quiet $run_options -- "${command[@]}")
    status=0
    timeout --kill-after=5 60 "${command[@]}" >"$folder/$way/out" 2>"$folder/$way/err" || status=$?
    echo "exit status $status" >>"$folder/$way/out"
    rm -rf "$folder/$way/data"
  done
  if ! cmp -s "$folder/plain/out" "$folder/under/out"; then
    echo "differs: ${program##*/} $* under: outcore run $run_options"
    diff "$folder/plain/out" "$folder/under/out" | head -n 6 | cut -c 1-300
    head -n 3 "$folder/under/err" | cut -c 1-300
    return 1
  fi
}

if [[ -n ${SEEDS-} ]]; then
  for ((seed = ${SEEDS%:*}; seed <= ${SEEDS#*:}; seed++)); do
    run_both --seed "$seed" "$@" || exit 1
  done
  echo "seeds $SEEDS agree"
else
  run_both "$@"
fi
