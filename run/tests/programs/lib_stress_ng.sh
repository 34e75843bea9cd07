# lib_stress_ng.sh : of the scripts with stress-ng's stressors, each of which verifies what it does,
# plainly and under Outcore: the same ones must end well. They are several programs of the suite, so
# that each has the time limit of one.
BUDGET=16M
MIN_SIZE=64k
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs stress-ng

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

# all_end_as_plainly GROUP…: those of one group run at the same time, for a second. Not among them:
#   mlockmany, physpage, tmpfs, io-uring   cannot run here even plainly (limits, /proc/kpagecount, a
#                                          tmpfs that may be filled, io_uring of this version)
#   chdir, mmapfork, fpunch, pipeherd,     go on for 5 to 30 s after their second is over, plainly
#   forkheavy, resources, oom-pipe, stack  too, or are to use up the machine's memory
#   swap, memhotplug                       change the machine
all_end_as_plainly() {
  local group
  for group in "$@"; do ends_as_plainly "$group" --alloc 1M; done
}
