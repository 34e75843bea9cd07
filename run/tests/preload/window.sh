#!/bin/bash
# window.sh OUTCORE BIN : where faults come in-thread with the window, where they do not, and that
# --explain says which, and why; children without the library; runs within runs; forged places.
set -uo pipefail
outcore=$1 bin=$2
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/outcore-window-XXXXXX")
trap 'rm -rf "$folder"' EXIT
options=(--quiet --budget 512k --min-size 4k)
told=(--budget 512k --min-size 4k --explain)
failed=0

wrong() { # TEXT
  echo "$1"
  head -n 5 "$folder/out" | cut -c 1-300
  failed=1
}
# says PATTERN COMMAND…: it succeeds, and says that.
says() {
  local pattern=$1
  shift
  "$@" >"$folder/out" 2>&1 || wrong "fails: $*"
  grep -q -- "$pattern" "$folder/out" || wrong "does not say '$pattern': $*"
}

# Where there is no window the program needs messages.
[[ $(id -u) == 0 || -w /dev/userfaultfd || $(</proc/sys/vm/unprivileged_userfaultfd) == 1 ]] || {
  echo "messages cannot be had here"
  exit 77
}

in_thread='faults in-thread: system calls that point into the window'
says "$in_thread" "$outcore" run "${told[@]}" -- "$bin/preload_raw_calls" "$folder"
says 'by messages.*--keep-privileges' \
  "$outcore" run "${told[@]}" --keep-privileges -- "$bin/preload_raw_calls" "$folder"
says 'by messages.*seccomp: Operation not permitted' \
  "$bin/preload_no_seccomp" "$outcore" run "${told[@]}" -- "$bin/preload_raw_calls" "$folder"
says 'is no place for a window' "$outcore" run "${told[@]}" -- \
  env OUTCORE_RUN_WINDOW=12:34 "$bin/preload_raw_calls" "$folder"
says 'no filter traps what points there' "$outcore" run "${told[@]}" -- \
  env OUTCORE_RUN_WINDOW=400100000000:4fff00001000 "$bin/preload_raw_calls" "$folder"
says 'no filter traps what points there' "$outcore" run "${told[@]}" --delivery messages -- \
  env OUTCORE_RUN_WINDOW=400100000000:4fff00001000 OUTCORE_DELIVERY= \
  "$bin/preload_raw_calls" "$folder"
says 'static lives' "$outcore" run "${options[@]}" -- sh -c "$bin/preload_static_child"
says 'all agree' "$outcore" run "${options[@]}" -- env -i "$bin/preload_raw_calls" "$folder"

# shellcheck disable=SC2016  # the inner shells'
same='outer=$OUTCORE_RUN_WINDOW
inner=$('"$outcore"' run --quiet -- sh -c "echo \$OUTCORE_RUN_WINDOW")
[ -n "$outer" ] && [ "$outer" = "$inner" ] && echo the same'
says 'the same' "$outcore" run "${options[@]}" -- sh -c "$same"
# shellcheck disable=SC2016
says '^none$' "$outcore" run "${options[@]}" --delivery messages -- \
  sh -c 'echo ${OUTCORE_RUN_WINDOW-none}'
says "$in_thread" "$outcore" run -- \
  "$outcore" run "${told[@]}" -- "$bin/preload_raw_calls" "$folder"
# The run that started this one did not install what it says.
says "$in_thread" env OUTCORE_RUN_WINDOW=400100000000:4fff00001000 \
  "$outcore" run "${told[@]}" -- "$bin/preload_raw_calls" "$folder"
exit $failed
