#!/bin/bash
# stress-ng-memory.sh: stress-ng's stressors for mappings and memory.
# shellcheck source-path=SCRIPTDIR source=lib_stress_ng.sh
. "$(dirname "$0")/lib_stress_ng.sh"

all_end_as_plainly \
  "madvise malloc mmap mmapaddr mmapfixed mmapmany" \
  "mprotect mremap msync msyncmany munmap pagemove pageswap userfaultfd" \
  "shm shm-sysv stackmmap vm vm-addr vm-rw vm-segv vm-splice" \
  "bad-altstack bigheap brk dev-shm env mlock" \
  "bsearch heapsort list mergesort qsort radixsort tree tsearch" \
  "memcpy memfd memthrash mincore misaligned remap rmap zero"
