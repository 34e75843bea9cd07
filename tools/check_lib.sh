# check_lib.sh : sourced by the tests of what is installed.
# shellcheck shell=bash

check() { # WHAT COMMAND…: a line that says what holds, or the command's own words
  local what=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "  ok: $what"
  else
    printf '%s\n  FAILED: %s\n' "$output" "$what"
    return 1
  fi
}
