#!/bin/bash
# memory_limit.sh MIB COMMAND… : runs COMMAND in a memory cgroup of its own (v1 or v2); page cache
# counts. Needs root. Drop the file from the page cache first (forget.sh), or pages that others
# cached are used for free.
# Prints the peak on standard error; the exit status is the command's.
set -euo pipefail
if (($# < 2)); then
  echo "usage: memory_limit.sh MIB COMMAND…" >&2
  exit 2
fi
limit=$(($1 * 1048576))
shift

if [[ -f /sys/fs/cgroup/cgroup.controllers ]]; then
  group=/sys/fs/cgroup/outcore-$$ limit_file=memory.max peak_file=memory.peak
  echo +memory >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
else
  group=/sys/fs/cgroup/memory/outcore-$$
  limit_file=memory.limit_in_bytes peak_file=memory.max_usage_in_bytes
fi
if ! mkdir "$group" 2>/dev/null || ! echo "$limit" >"$group/$limit_file" 2>/dev/null; then
  rmdir "$group" 2>/dev/null || true
  echo "memory_limit: cannot make the cgroup $group: run as root" >&2
  exit 1
fi

status=0
(echo "$BASHPID" >"$group/cgroup.procs" && exec "$@") || status=$?
peak=$(cat "$group/$peak_file" 2>/dev/null || echo 0)
echo "memory_limit: peak $((peak / 1048576)) MiB of $((limit / 1048576))" >&2
[[ ! -f $group/memory.force_empty ]] || echo 1 >"$group/memory.force_empty" 2>/dev/null || true
rmdir "$group" 2>/dev/null || true
exit "$status"
