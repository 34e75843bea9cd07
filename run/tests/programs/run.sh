#!/bin/bash
# run.sh [NAME…] : real programs under `outcore run`, their answers compared with plain runs; all,
# or those named. What they need is installed first; a program that cannot be is skipped.
# OUTCORE: the command. WORK: a folder for data and logs. RESULT: the JUnit file.
# PLAIN=1: all runs are plain. SECONDS_MAX: the time limit of each program. JOBS: how many at once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source_dir=$(cd "$here/../../.." && pwd)
work=${WORK:-$source_dir/build/programs}
result=${RESULT:-$work/programs.xml}
seconds_max=${SECONDS_MAX:-120}
jobs=${JOBS:-$(nproc)}
venv=$source_dir/build/programs-venv
export PLAIN=${PLAIN-} OUTCORE=${OUTCORE:-$source_dir/build/bin/outcore} PYTHON=

all=()
for script in "$here"/*.sh; do
  name=$(basename "$script" .sh)
  [[ $name == run || $name == lib || $name == lib_* ]] || all+=("$name")
done
names=("$@")
((${#names[@]})) || names=("${all[@]}")
for name in "${names[@]}"; do
  if [[ " ${all[*]} " != *" $name "* ]]; then
    echo "run.sh: '$name' is no program of the suite; there are: ${all[*]}" >&2
    exit 2
  fi
done
if [[ $PLAIN != 1 && ! -x $OUTCORE ]]; then
  echo "run.sh: $OUTCORE is not there: make build, or PLAIN=1" >&2
  exit 1
fi

# install WANTED STAMP: the packages of a file of requirements, unless its copy STAMP is there.
install() {
  local log=$work/logs/venv.log
  ! cmp -s "$1" "$2" || return 0
  echo "installing Python packages: $(grep -o '^[a-z-]*' "$1" | xargs)"
  if ! "$venv/bin/pip" install --quiet --only-binary :all: -r "$1" >"$log" 2>&1; then
    tail -n 5 "$log"
    return 1
  fi
  cp "$1" "$2"
}

# The packages of requirements.txt, and then those that only ycsb and llama need.
install_python_packages() {
  if ! cmp -s "$here/requirements.txt" "$venv/requirements.txt"; then
    rm -rf "$venv"
    python3 -m venv "$venv" || return 1
  fi
  install "$here/requirements.txt" "$venv/requirements.txt" || return 1
  PYTHON=$venv/bin/python
  install "$source_dir/bench/doors/requirements.txt" "$venv/named-rows.txt" ||
    echo "run.sh: these cannot be installed: programs that need them are skipped"
}

escape() {
  tr -d '\000-\010\013-\037' | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g'
}

# run_case NAME: one line on the screen, one case in $work/cases. In a process of its own.
run_case() {
  local name=$1 log=$work/logs/$1.log status=0 began=${EPOCHREALTIME/./} ms seconds reason
  local inner= running=
  # `timeout` has a process group of its own, which hears nothing of the terminal.
  trap '[[ -z $running ]] || kill "$running" 2>/dev/null; exit 130' INT TERM
  mkdir -p "$work/data/$name"
  WORK=$work/data/$name timeout --kill-after=10 "$seconds_max" bash "$here/$name.sh" \
    >"$log" 2>&1 </dev/null &
  running=$!
  wait "$running" || status=$?
  ms=$(((${EPOCHREALTIME/./} - began) / 1000))
  printf -v seconds '%d.%d' $((ms / 1000)) $((ms % 1000 / 100))
  case $status in
  0) echo "ok $name $seconds s" ;;
  77)
    reason=$(sed -n 's/^skipped: //p' "$log" | tail -n 1)
    echo "skipped $name: $reason"
    inner="<skipped message=\"$(escape <<<"$reason")\"/>"
    ;;
  *)
    reason="status $status"
    ((status != 124 && status != 137)) || reason="more than $seconds_max s"
    echo "FAILED $name $seconds s: $reason; $log ends so:"
    tail -n 12 "$log" | sed 's/^/    /'
    inner="<failure message=\"$reason\"/><system-out>$(tail -n 40 "$log" | escape)</system-out>"
    ;;
  esac
  echo "<testcase name=\"$name\" classname=\"programs\" time=\"$seconds\">$inner</testcase>" \
    >"$work/cases/$name"
  rm -rf "$work/data/$name"
  ((status == 0 || status == 77))
}

# shellcheck disable=SC2046  # one word a job
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM
rm -rf "$work/data" "$work/cases" "$result"
mkdir -p "$work/logs" "$work/cases" "$(dirname "$result")"
"$source_dir/tools/install_packages.sh" programs || echo "run.sh: what is missing is skipped"
install_python_packages || echo "run.sh: the Python packages cannot be installed; skipped"

failed=0
count=0
for name in "${names[@]}"; do
  if ((count == jobs)); then
    wait -n || failed=$((failed + 1))
    count=$((count - 1))
  fi
  run_case "$name" &
  count=$((count + 1))
done
for ((; count > 0; --count)); do wait -n || failed=$((failed + 1)); done
cat >"$result" <<EOF
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="programs" tests="${#names[@]}" failures="$failed">
$(cat "$work"/cases/*)
</testsuite>
EOF
echo "${#names[@]} programs, $failed failed, in $SECONDS s"
((failed == 0))
