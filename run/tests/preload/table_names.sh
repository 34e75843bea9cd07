#!/bin/bash
# table_names.sh OUTCORE PROGRAM : names of files in the table of a run stand in one line each, have
# nothing that controls a terminal, and are cut between characters. PROGRAM maps a file that it
# makes in a folder (fds).
set -euo pipefail
outcore=$1 program=$2
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/outcore-names-XXXXXX")
trap 'rm -rf "$folder"' EXIT

wrong() { # WHY
  echo "$1"
  cat -v "$folder/err"
  exit 1
}
check() { # NAME WANTED OPTION…
  local name=$1 wanted=$2
  shift 2
  mkdir -p "$folder/$name"
  "$outcore" run --budget 1M "$@" -- "$program" "$folder/$name" >"$folder/out" 2>"$folder/err" ||
    wrong "failed: $*"
  ! LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]' "$folder/err" || wrong "controls a terminal: $*"
  iconv -f UTF-8 -t UTF-8 "$folder/err" >"$folder/again" || wrong "cut within a character: $*"
  grep -qF "$wanted" "$folder/again" || wrong "not there: $wanted: $*"
}
umlauts=äöüäöüäöüäöüäöüäöüäöü
for options in '--min-size 4k' '--min-size 4k --explain' '--min-size 1G --explain'; do
  # shellcheck disable=SC2086  # options are words
  check $'es\e[31mc\rX\nünder' 'es [31mc X ünder/' $options
  # shellcheck disable=SC2086
  check "$umlauts" "äöüäöü/" $options
done
