#!/bin/bash
# fio.sh : random writes and reads through maps, by a child and by threads, each block verified.
BUDGET=8M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs fio

same=(--name=v --bs=4k --randseed=9 --verify=crc32c --output-format=terse --terse-version=3)
mapped=("${same[@]}" --ioengine=mmap --do_verify=1 --verify_fatal=1)
# Field 5 of a terse line is the error, 6 and 47 the KiB read and written.
answer_of() { cut -d ';' -f 5,6,47 "$1"; }

# works FILES ARGUMENT…: the same work plainly and under Outcore.
works() {
  local files=$1
  shift
  rm -f v*
  fio "${mapped[@]}" "$@" >plain.txt
  rm -f v*
  rt -- fio "${mapped[@]}" "$@" >under.txt
  expect_taken "$files"
  expect_equal "$*" "$(answer_of plain.txt)" "$(answer_of under.txt)"
  [[ $(cut -d ';' -f 5 under.txt | sort -u) == 0 ]] || fail "fio: $(<under.txt)"
  # The same blocks once more, by read(2): what was written to memory has reached the file.
  fio "${same[@]}" "$@" --ioengine=psync --verify_only >verified.txt
  [[ $(cut -d ';' -f 5 verified.txt | sort -u) == 0 ]] || fail "fio: $(<verified.txt)"
  echo "verified: $*"
}

works '*/v.bin' --filename=v.bin --size=32m --rw=randwrite
works '*/v.[01].0' --size=16m --rw=randrw --thread --numjobs=2
