#!/bin/bash
# stress-ng.sh : stress-ng's stressors for mappings, memory, files, signals and processes, each of
# which verifies what it does, plainly and under Outcore: the same ones must end well.
BUDGET=16M
MIN_SIZE=64k
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs stress-ng

# Those of one line run at the same time, for a second. Not among them:
#   mlockmany, physpage, tmpfs, io-uring   cannot run here even plainly (limits, /proc/kpagecount, a
#                                          tmpfs that may be filled, io_uring of this version)
#   chdir, mmapfork, fpunch, pipeherd,     go on for 5 to 30 s after their second is over, plainly
#   forkheavy, resources, oom-pipe, stack  too, or are to use up the machine's memory
#   swap, memhotplug                       change the machine
groups=(
  "madvise malloc mmap mmapaddr mmapfixed mmapmany"
  "mprotect mremap msync msyncmany munmap pagemove pageswap userfaultfd"
  "shm shm-sysv stackmmap vm vm-addr vm-rw vm-segv vm-splice"
  "bad-altstack bigheap brk dev-shm env mlock"
  "bsearch heapsort list mergesort qsort radixsort tree tsearch"
  "memcpy memfd memthrash mincore misaligned remap rmap zero"
  "access chmod copy-file dentry dir dup fallocate fcntl"
  "file-ioctl filename flock fstat getdent handle hdd inotify"
  "io iomix lease link locka lockf lockofd readahead"
  "rename seek sendfile splice symlink sync-file tee utime"
  "aio fanotify sockfd pipe null full revio"
  "alarm fault itimer kill sigabrt sigchld sigfd sigfpe"
  "sigio signal signest sigpending sigpipe sigq sigrt sigsegv"
  "sigsuspend sigtrap timer timerfd pidfd eventfd poll"
  "clone close daemon exec exit-group fork pthread"
  "ptrace session spawn switch vfork wait zombie"
)

# What a run says of each stressor that does not end well.
failures_of() {
  grep -oE 'fail: +\[[0-9]+\] [a-z-]+|\([a-z-]+\) terminated' "$1" | grep -oE '[a-z-]{3,}' |
    grep -vxE 'fail|terminated' | sort -u || true
}

# ends_as_plainly GROUP [OPTION…]: its stressors under `outcore run OPTION…`.
ends_as_plainly() {
  local group=$1 status=0 plain=0 name
  shift
  local command=(stress-ng --verify --timeout 1 --temp-path "$WORK")
  for name in $group; do command+=("--$name" 1); done
  rt --quiet "$@" -- "${command[@]}" >under.txt 2>&1 || status=$?
  if ((status == 0)); then
    echo "ends well: $group"
    return
  fi
  # Only then is it worth the time to ask what a plain run says.
  "${command[@]}" >plain.txt 2>&1 || plain=$?
  expect_equal "status of $group" "$plain" "$status"
  expect_equal "what fails of $group" "none $(failures_of plain.txt)" \
    "none $(failures_of under.txt)"
}

for group in "${groups[@]}"; do ends_as_plainly "$group" --alloc 1M; done
ends_as_plainly aiol # io_setup() is refused with --alloc
