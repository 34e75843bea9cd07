#!/bin/bash
# full_disk.sh OUTCORE PROGRAMS : programs under `outcore run` that write more to a mapped file than
# fits on its disk, a small one of ext4. What they are told is what the kernel's mappings would tell
# them (ENOSPC, SIGBUS), at once; and one line says what that costs. Exit status 77: no such disk
# can be had here.
set -uo pipefail
outcore=$1 programs=$2
folder=$(mktemp -d "${TMPDIR:-/var/tmp}/outcore-full-XXXXXX")
disk=$folder/disk
trap 'umount "$disk" 2>/dev/null; rm -rf "$folder"' EXIT

mkdir "$disk"
truncate -s 32M "$folder/image"
make_disk() {
  mkfs.ext4 -q -m0 -O ^has_journal "$folder/image" && mount -o loop "$folder/image" "$disk"
}
if ! make_disk 2>"$folder/why"; then
  echo "no small disk: $(cat "$folder/why")"
  exit 77
fi

failures=0
# expect STATUS MIB WAY LINE… : the program's exit status, what it prints, and the rest by `said`.
expect() {
  local status=$1 mib=$2 way=$3 code=0
  shift 3
  rm -f "$disk/full_disk"
  timeout --kill-after=5 60 "$outcore" run --quiet --budget 64M --min-size 4k -- \
    "$programs/preload_full_disk" "$disk" $((mib << 20)) "$way" \
    >"$folder/out" 2>"$folder/err" || code=$?
  if (($# > 0)); then printf '%s\n' "$@"; fi >"$folder/wanted"
  ((code == status)) || wrong "$way $mib: exit status $code, not $status"
  cmp -s "$folder/out" "$folder/wanted" || wrong "$way $mib: prints other lines"
}
# said COUNT PATTERN : so many lines of standard error have it.
said() {
  local count
  count=$(grep -c -- "$2" "$folder/err")
  ((count == $1)) || wrong "$count lines have '$2', not $1"
}
wrong() {
  echo "WRONG: $1"
  sed 's/^/  out: /' "$folder/out"
  cut -c 1-300 "$folder/err" | sed 's/^/  err: /'
  failures=$((failures + 1))
}

lost='full_disk: what the program wrote cannot be stored: No space left on device'
expect 0 8 msync 'all written' 'msync: done' 'slow: 0' 'msync: done' 'slow: 0'
said 0 .
no_space='msync: No space left on device'
expect 0 48 msync 'all written' "$no_space" 'slow: 0' "$no_space" 'slow: 0'
said 1 "$lost; it is lost when the process ends"
expect 0 48 end 'all written'
said 1 "$lost"
said 1 .
expect 0 48 munmap 'all written' 'munmap: No space left on device'
said 1 "munmap of .*/$lost; it stays mapped, in memory: make room before the program ends"
said 1 "/$lost; it is lost when the process ends"
said 0 'flush again'
expect 3 256 catch 'SIGBUS where it wrote'
said 1 "$lost"
expect 135 256 touch
said 1 'make room in their store, or give a larger budget'
said 1 "$lost"

# An allocation for which there is no room there is refused, which is told once.
rm -f "$disk/full_disk"
"$outcore" run --alloc 1M --store "scratch:$disk" -- \
  python3 -c 'import ctypes
malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_void_p
print([malloc(ctypes.c_size_t(size << 20)) is None for size in (256, 512, 2)])' \
  >"$folder/out" 2>"$folder/err"
grep -qF '[True, True, False]' "$folder/out" || wrong "allocations: other answers"
said 1 "^outcore: allocate 256 MiB: no room on scratch space in $disk"
said 1 'no room on scratch space'
exit $((failures != 0))
