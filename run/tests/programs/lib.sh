# lib.sh: what the script of every program begins with. It sets BUDGET and MIN_SIZE, then:
#   needs COMMAND…                    or the case is skipped, with the reason
#   rt [OPTION…] -- PROGRAM ARGUMENT… the program under `outcore run`; plainly if PLAIN=1
#   expect_taken GLOB…                the last rt had files of these paths in Outcore, larger than
#                                     the budget, and kept to it; see check_report.py
#   expect_allocated                  the same of allocations (rt --alloc SIZE)
#   expect_equal WHAT PLAIN UNDER     two answers are the same, and not empty
# From run.sh: OUTCORE, WORK (an empty folder, where the script begins), PYTHON, PLAIN.
# shellcheck shell=bash
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${WORK:?a folder for the data; or say: run/tests/programs/run.sh $(basename "$0" .sh)}"
: "${BUDGET:?each script sets its budget}" "${MIN_SIZE:=1M}"
report=$WORK/report.json
# Wrappers in Perl and the JVM warn about locales that are not installed.
export LC_ALL=C HOME=$WORK
cd "$WORK"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

skip() {
  echo "skipped: $*"
  exit 77
}

needs() {
  local command
  for command in "$@"; do
    [[ -n $(command -v "$command") ]] ||
      skip "$command is not installed: tools/install_packages.sh programs"
  done
}

needs_python() {
  [[ -x ${PYTHON-} ]] || \
    skip "the packages of run/tests/programs/requirements.txt are not installed"
}

rt() {
  local options=()
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  rm -f "$report"*
  if [[ ${PLAIN-} == 1 ]]; then
    "$@"
  else
    echo "budget $BUDGET: $*" >&2
    "${OUTCORE:?the command outcore}" run --budget "$BUDGET" --min-size "$MIN_SIZE" \
      --json "$report" "${options[@]}" -- "$@"
  fi
}

needs_module() {
  local module
  needs_python
  for module in "$@"; do
    "$PYTHON" -c "import $module" 2>/dev/null ||
      skip "the package $module of bench/doors/requirements.txt is not installed"
  done
}

expect_taken() {
  [[ ${PLAIN-} == 1 ]] || python3 "$here/check_report.py" "$report" "$BUDGET" "$@" ||
    fail "the files were not in Outcore as they should"
}

expect_allocated() {
  [[ ${PLAIN-} == 1 ]] || python3 "$here/check_report.py" "$report" "$BUDGET" --allocations ||
    fail "the allocations were not in Outcore as they should"
}

expect_equal() {
  local shown=${3//$'\n'/ | }
  ((${#shown} <= 120)) || shown="${shown:0:120}…"
  [[ -n $2 ]] || fail "$1: there is no answer"
  [[ $2 == "$3" ]] || fail "$1: expected '${2:0:2000}', not '${3:0:2000}'"
  echo "same: $1: $shown"
}

expect_same_bytes() { # WHAT PLAIN UNDER
  [[ -s $2 ]] || fail "$1: $2 is empty"
  cmp "$2" "$3" || fail "$1: $2 and $3 differ"
  echo "same: $1: $(stat -c %s "$2") bytes"
}
