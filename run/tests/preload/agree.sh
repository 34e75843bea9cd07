#!/bin/bash
# agree.sh OUTCORE PROGRAM RUN_OPTIONS ARGUMENTS… : runs a program of programs/ plainly and under
# `outcore run RUN_OPTIONS`; output, exit status and the files that are left must be the same, and
# the status 0. FOLDER in an argument becomes a folder of each run; SEEDS=FROM:TO in the environment
# runs it for each seed, of which OUTCORE_TEST_SHARE=N takes one in N.
# Where they differ, it prints the command to run that again, the first line that differs, and how
# each run ended.
set -uo pipefail
outcore=$1 program=$2 run_options=$3
shift 3
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/outcore-agree-XXXXXX")
trap 'rm -rf "$folder"' EXIT

run_both() { # ARGUMENTS…
  local way status
  for way in plain under; do
    rm -rf "$folder/$way/data"
    mkdir -p "$folder/$way/data"
    local command=("$program" "${@//FOLDER/$folder/$way/data}")
    # shellcheck disable=SC2206  # options are words
    [[ $way == plain ]] || command=("$outcore" run --quiet $run_options -- "${command[@]}")
    status=0
    timeout --kill-after=5 60 "${command[@]}" >"$folder/$way/out" 2>"$folder/$way/err" || status=$?
    (cd "$folder/$way/data" && find . -type f -exec cksum {} + | sort) >>"$folder/$way/out"
    echo "exit status $status" >>"$folder/$way/out"
  done
  if [[ $(tail -n 1 "$folder/plain/out") != "exit status 0" ]]; then
    echo "fails by itself: $program $*"
    tell_run plain 1
    return 1
  fi
  cmp -s "$folder/plain/out" "$folder/under/out" && return
  tell_difference "$@"
  return 1
}

# tell_run plain|under LINE: that line, where the other run has another one; what was found wrong;
# how it ended, and its errors.
tell_run() {
  local out=$folder/$1/out err=$folder/$1/err
  echo "$1, line $2 of $(wc -l <"$out"): $(sed -n "$2p" "$out" | cut -c 1-1000)"
  grep -a MISMATCH "$out" | cut -c 1-2000
  tail -n 1 "$out"
  head -n 10 "$err" | cut -c 1-300
}

tell_difference() { # ARGUMENTS…
  local line
  echo "differs: ${program##*/} $* under: outcore run $run_options"
  echo "again: SEEDS= $0 $outcore $program '$run_options' $*"
  # shellcheck disable=SC2016  # awk's own
  line=$(awk 'NR == FNR { plain[FNR] = $0; next } $0 != plain[FNR] { print FNR; exit }' \
    "$folder/plain/out" "$folder/under/out")
  tell_run plain "$line"  # sequence begins its lines with the number of the step
  tell_run under "$line"
}

if [[ -n ${SEEDS-} ]]; then
  for ((seed = ${SEEDS%:*}; seed <= ${SEEDS#*:}; seed += ${OUTCORE_TEST_SHARE:-1})); do
    run_both --seed "$seed" "$@" || exit 1
  done
  echo "seeds $SEEDS agree"
else
  run_both "$@"
fi
