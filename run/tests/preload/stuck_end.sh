#!/bin/bash
# stuck_end.sh OUTCORE PROGRAMS : a program under `outcore run` is ended by a signal while its disk
# takes nothing (a frozen filesystem). It waits as long as it was told to, says so in one line, and
# ends as soon as the kernel lets go of the thread that stores. Exit status 77: no such disk can be
# had here.
set -uo pipefail
outcore=$1 programs=$2
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/outcore-stuck-XXXXXX")
disk=$folder/disk
tidy() {
  fsfreeze --unfreeze "$disk" 2>/dev/null
  [[ -z ${program-} ]] || kill -KILL "$program" 2>/dev/null
  wait
  umount "$disk" 2>/dev/null
  rm -rf "$folder"
}
trap tidy EXIT

mkdir "$disk"
truncate -s 32M "$folder/image"
make_disk() {
  mkfs.ext4 -q -m0 "$folder/image" && mount -o loop "$folder/image" "$disk" &&
    fsfreeze --freeze "$disk" && fsfreeze --unfreeze "$disk"
}
if ! make_disk 2>"$folder/why"; then
  echo "no disk to freeze: $(cat "$folder/why")"
  exit 77
fi

mkfifo "$folder/said"
OUTCORE_RUN_PATIENCE=1 "$outcore" run --quiet --budget 8M --min-size 4k -- \
  "$programs/preload_write_and_wait" "$disk" $((1 << 20)) >"$folder/said" 2>"$folder/err" &
program=$!
read -r said <"$folder/said"
[[ $said == written ]] || { echo "it has not written: $(cat "$folder/err")"; exit 1; }
fsfreeze --freeze "$disk"
kill -TERM "$program"
for ((i = 0; i < 400; ++i)); do  # as long as no line is there, at most 40 s
  grep -q 'storing did not go on for 1 s' "$folder/err" && break
  sleep 0.1
done
fsfreeze --unfreeze "$disk"
wait "$program"
status=$?
program=
cat "$folder/err"
(($(wc -l <"$folder/err") == 1)) || { echo "not one line"; exit 1; }
grep -q 'could not be stored at its end: storing did not go on for 1 s' "$folder/err" || exit 1
((status == 143)) || { echo "exit status $status, not 143"; exit 1; }
