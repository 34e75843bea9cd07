#!/bin/bash
# greedy_neighbour.sh OUTCORE PROGRAMS : a program under `outcore run --budget auto` writes a mapped
# file over and over, beside a neighbour in the same cgroup that takes memory whenever some is left,
# until it has nearly half of the limit, and gives it back. The budget shrinks before the kernel
# kills anybody, and grows back; no byte is lost. Says how long that took. Exit status 77: no cgroup
# can be made here.
set -uo pipefail
outcore=$1 programs=$2
limit=$(dirname "$0")/../../../tools/memory_limit.sh
limit_mib=256 file_mib=160 wanted_mib=120 piece_mib=4
# What the neighbour leaves, and by how much the program's memory must grow to have grown, in MiB.
least_left_mib=12 grown_mib=24

if [[ -z ${OUTCORE_IS_INSIDE-} ]]; then
  folder=$(mktemp -d "${TMPDIR:-/var/tmp}/outcore-neighbour-XXXXXX")
  trap 'rm -rf "$folder"' EXIT
  if ! "$limit" "$limit_mib" true 2>"$folder/why"; then
    cat "$folder/why"
    exit 77
  fi
  OUTCORE_IS_INSIDE=$folder "$limit" "$limit_mib" "$0" "$outcore" "$programs"
  exit
fi

folder=$OUTCORE_IS_INSIDE
unset OUTCORE_IS_INSIDE
if [[ -f /sys/fs/cgroup/cgroup.controllers ]]; then
  group=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
  usage=memory.current killed=memory.events caches='inactive_file|active_file'
else
  group=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
  usage=memory.usage_in_bytes killed=memory.oom_control
  caches='total_inactive_file|total_active_file'
fi
[[ -r $group/$usage ]] || { echo "cannot read $group/$usage"; exit 77; }

# Sets kept_mib and left_mib: what the cgroup has in memory beside page cache, and what is left.
look() {
  local used cache=0 name value
  read -r used <"$group/$usage"
  while read -r name value; do
    [[ ! $name =~ ^($caches)$ ]] || cache=$((cache + value))
  done <"$group/memory.stat"
  kept_mib=$(((used - cache) >> 20))
  left_mib=$((limit_mib - kept_mib))
}
milliseconds() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }
wrong() {
  echo "WRONG: $1"
  look
  echo "  kept $kept_mib MiB, left $left_mib MiB of $limit_mib"
  cut -c 1-300 "$folder/err" | sed 's/^/  err: /'
  kill -KILL "$program" 2>/dev/null
  wait "$program"
  exit 1
}
# until_so WHAT CONDITION… : waits until a command succeeds, at most two minutes.
until_so() {
  local what=$1 i
  shift
  for ((i = 0; i < 12000; ++i)); do
    look
    if "$@"; then return; fi
    kill -0 "$program" 2>/dev/null || wrong "the program ended before $what"
    sleep 0.01
  done
  wrong "not within two minutes: $what"
}
# The answers of the neighbour: it is there, and has so much.
tell() { echo "$1" >&"${NEIGHBOUR[1]}" && read -r has <&"${NEIGHBOUR[0]}"; }

mkfifo "$folder/said"
mkdir "$folder/data"
"$outcore" run --quiet --budget auto --min-size 4k --metrics-at-exit "$folder/metrics" -- \
  "$programs/preload_rewriting" "$folder/data" $((file_mib << 20)) \
  >"$folder/said" 2>"$folder/err" &
program=$!
exec 3<"$folder/said"
read -r said <&3
[[ $said == written ]] || wrong "it has not written"
coproc NEIGHBOUR { exec "$programs/preload_neighbour"; }
neighbour=$NEIGHBOUR_PID
trap '' PIPE  # should the neighbour be killed

# It is as large as it becomes: the budget leaves a quarter to others, and a slack.
has_room() { ((left_mib < limit_mib / 2)); }
until_so "the program has half of the memory" has_room
before_mib=$kept_mib
began=$(milliseconds)
longest=0 has=0
can_take() { ((left_mib >= least_left_mib + piece_mib)); }
while ((has < wanted_mib << 20)); do
  asked=$(milliseconds)
  until_so "the neighbour gets $piece_mib MiB more than $((has >> 20))" can_take
  tell "take $((piece_mib << 20))" || wrong "the neighbour is gone"
  waited=$(($(milliseconds) - asked))
  ((waited <= longest)) || longest=$waited
done
took=$(($(milliseconds) - began))
look
echo "neighbour: $wanted_mib MiB after $took ms, at most $longest ms for $piece_mib MiB; of" \
  "$limit_mib MiB $before_mib were in use before, $kept_mib then"

tell give || wrong "the neighbour is gone"
((has == 0)) || wrong "it has given back all but $has"
look
after_mib=$kept_mib
began=$(milliseconds)
has_grown() { ((kept_mib >= after_mib + grown_mib)); }
until_so "the program's memory grows again" has_grown
echo "program: from $after_mib to $kept_mib MiB within $(($(milliseconds) - began)) ms"

touch "$folder/data/stop"
read -r said <&3
wait "$program"
status=$?
exec {NEIGHBOUR[1]}>&-
wait "$neighbour" || wrong "the neighbour's exit status is $?"
echo "${said:-nothing was said}"
cat "$folder/err"
((status == 0)) || wrong "exit status $status"

# number NAME : of the metrics; 0 if there is none.
number() { grep -o "\"$1\":[0-9]*" "$folder/metrics" | head -n 1 | cut -d : -f 2; }
shrinks=$(number budget_shrinks) growths=$(number budget_growths)
failures=$(number budget_shrink_failures) slowest_ns=$(number budget_shrink_ns_max)
echo "budget: smaller ${shrinks:-0} times, larger ${growths:-0} times, ${failures:-0} failed;" \
  "the longest took $((${slowest_ns:-0} / 1000000)) ms"
((${shrinks:-0} > 0)) || wrong "the budget has not shrunk"
((${growths:-0} > 0)) || wrong "the budget has not grown"
kills=$(sed -n 's/^oom_kill //p' "$group/$killed")
[[ $kills == 0 ]] || wrong "the kernel has killed ${kills:-nobody can tell how many}"
