#!/bin/bash
# explains_refusal.sh OUTCORE : under --alloc io_uring and aio are refused, and --explain says so in
# one line, of a run and not of each of its processes; without --explain, or where they are
# permitted, nothing is said.
set -euo pipefail
outcore=$1
lines() { # OPTION…
  { "$outcore" run --budget 12M "$@" -- sh -c '/bin/true; /bin/true' 2>&1 || echo failed; } |
    grep -c 'io_uring and aio are refused (ENOSYS).*--allow-aio permits them' || true
}
check() { # WANTED OPTION…
  local wanted=$1 count
  shift
  count=$(lines "$@")
  [[ $count == "$wanted" ]] || {
    echo "$* : said $count times, not $wanted"
    exit 1
  }
}
check 1 --explain --alloc 64k
check 0 --alloc 64k
check 0 --explain --alloc 64k --allow-aio
check 0 --explain

# A program that leaves nothing to be explained is told as such.
said=$("$outcore" run --budget 12M --explain -- /bin/true 2>&1)
[[ $said == *"nothing went through Outcore"* && $said != *$'\n'* ]] || {
  echo "of nothing it said: $said"
  exit 1
}
said=$("$outcore" run --budget 12M --explain -q -- /bin/true 2>&1)
[[ -z $said ]] || {
  echo "with -q it said: $said"
  exit 1
}
