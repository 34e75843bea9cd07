#!/bin/bash
# test.sh [STAGE…] : the default stages, or those named. `test.sh list` names them.
# Each prints a heading and its time. Results: build/results/STAGE.xml (JUnit) and STAGE.status.
# Stages that wait much (for servers, for a compiler of one file) run beside those that compute;
# what they say comes when each has ended. With names of stages all run one after the other.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
source_dir=$PWD
results=$source_dir/build/results
jobs=${JOBS:-$(nproc)}
tests_at_once=$((jobs + 2)) # many wait for servers
# Objects are the same in every checkout of the same sources, and by the same name of the compiler:
# that of `make build`, where it is g++.
if [[ $(c++ --version 2>/dev/null) == *"Free Software Foundation"* ]]; then
  export CC=${CC:-cc} CXX=${CXX:-c++}
else
  export CC=${CC:-gcc} CXX=${CXX:-g++}
fi
export CCACHE_BASEDIR=$source_dir CCACHE_NOHASHDIR=1
# On a miss the compiler alone reads the sources; ccache would, too, and twice.
export CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros
test_seconds_max=${TEST_SECONDS_MAX:-300}

first_stages=(tools gcc clang)
computing_stages=(checked tsan unprivileged install)
waiting_stages=(programs python docs) # a row beside those that compute; both take as long
default_stages=("${first_stages[@]}" "${computing_stages[@]}" "${waiting_stages[@]}")
# By name: with these, two cores would take longer than a commit may wait.
all_stages=("${default_stages[@]}" all changed asan masked tidy tsan-all qemu wheel deb)

describe() {
  case $1 in
  tools) echo "layers, sizes, banned calls, assertions, formatting" ;;
  gcc) echo "g++ -Werror: what the sanitizers leave out, and stress without them" ;;
  checked) echo "g++, all checks, no sanitizer: the simulations with all their seeds" ;;
  all) echo "build with g++ -Werror, all tests" ;;
  programs) echo "real programs under \`outcore run\`" ;;
  python) echo "the Python package: built, installed, its tests and examples" ;;
  docs) echo "every command of the documentation, and the site" ;;
  clang) echo "clang++ -Werror, checked: AddressSanitizer and UndefinedBehaviorSanitizer" ;;
  tidy) echo "clang-tidy" ;;
  asan) echo "the same sanitizers with g++" ;;
  tsan) echo "ThreadSanitizer: what is concurrent in the core" ;;
  tsan-all) echo "ThreadSanitizer: all tests" ;;
  unprivileged) echo "as user nobody, with vm.unprivileged_userfaultfd=0" ;;
  masked) echo "conformance and integration with the kernel features of 5.15, 6.1 and 6.8" ;;
  install) echo "installation, static and shared, and programs that use it" ;;
  changed) echo "build with g++ -Werror, tests of the products that differ from \$BASE (HEAD)" ;;
  wheel) echo "the wheel of \`make wheel\`, where no compiler is" ;;
  deb) echo "the Debian package, installed by apt into a clean root" ;;
  qemu) echo "conformance on the distribution's own kernel, under software emulation" ;;
  esac
}

# skip REASON: the stage cannot run here. Never for a stage that could.
skip() {
  echo "skipped: $1"
  skip_reason=$1
  return 77
}

targets=(all)
# configure_and_build DIRECTORY [CMAKE OPTION…]
configure_and_build() {
  local directory=$1 began=$SECONDS
  shift
  # Another stage may be building there.
  (
    flock 9
    cmake -S . -B "$directory" -G Ninja -DOUTCORE_WERROR=ON -DOUTCORE_TESTS=ON "$@" >/dev/null &&
      cmake --build "$directory" -j "$jobs" --target "${targets[@]}" -- --quiet 9>&-
  ) 9>"$results/.${directory##*/}.lock" &&
    echo "-- $directory is built, $((SECONDS - began)) s"
}

# run_tests NAME DIRECTORY [OPTION OF run_tests.py…]
launcher=
run_tests() {
  local name=$1 directory=$2
  shift 2
  $launcher tools/run_tests.py "$directory" --jobs "$tests_at_once" \
    --timeout "$test_seconds_max" --junit "$results/$name.xml" "$@"
}

stage_tools() {
  local check status=0 checks=()
  for check in layers circles sizes banned; do
    "tools/check_$check.py" &
    checks+=($!)
  done
  tools/house.py --check &
  checks+=($!)
  tools/format.sh --check || status=1
  for check in "${checks[@]}"; do wait "$check" || status=1; done
  return "$status"
}

# `clang` runs all that it can, with sanitizers and all checks. Here is what they cannot run, and of
# the rest what shows another compiler's order of loads and stores in the code that users have.
# Of the seeds of whole programs one in two; all of them in `all`.
without_sanitizers='^(preload|storm|occ|cli|sight|commands|page|rbd|kinds|tools|papers|c|example'
without_sanitizers+='|stress|kernel|integration)$'
# Of `integration` these run in `clang`, `tsan` and, compiled as here, in `unprivileged`.
elsewhere='(^|/)(Fetches|Learnt|AutoPolicyOf|FramesOf|OwnStore|FailingStore|AutoBudget|Handlers)\.'

# Tests that no default stage runs as compiled here: `clang` has them, most of them `checked`, too.
computed_elsewhere='^(base|os|options|metrics|policy|prefetch|predecessor|sim|store|pool|cut'
computed_elsewhere+='|capture|heap|redis)$'

build_for_users() { # what users have, and the tests of these stages
  configure_and_build build "-DOUTCORE_TESTS_ASIDE=$computed_elsewhere"
}

# What the papers' rows are compared with: what cannot be installed is skipped.
install_what_rows_compare() {
  tools/install_packages.sh kraken || echo "test.sh: without kraken2"
  tools/install_rivals.sh build/rivals
}

stage_gcc() {
  build_for_users && install_what_rows_compare &&
    OUTCORE_TEST_SHARE=2 run_tests gcc build --label "$without_sanitizers" \
      --without "$elsewhere" --jobs $((tests_at_once + 1)) # those of Ceph wait for it
}

stage_all() {
  configure_and_build build -DOUTCORE_TESTS_ASIDE= && install_what_rows_compare &&
    OUTCORE_MECHANISMS=all run_tests all build
}

# For daily work. What the core, the public headers or the build are made of concerns every product.
stage_changed() {
  local base=${BASE:-HEAD} labels
  labels=$({
    git diff --name-only "$base" || return 1
    git ls-files --others --exclude-standard
  } | tools/changed_tests.py) || return 1
  if [[ -z $labels ]]; then
    skip "nothing differs from $base"
    return
  fi
  echo "-- $(xargs <<<"$labels")"
  # Each source by itself, so that a change compiles little.
  configure_and_build build -DOUTCORE_UNITY=OFF -DOUTCORE_TESTS_ASIDE= &&
    run_tests changed build --label "^($(xargs <<<"$labels" | tr ' ' '|'))\$"
}

stage_programs() {
  build_for_users && tools/install_packages.sh programs &&
    RESULT=$results/programs.xml run/tests/programs/run.sh
}

stage_python() {
  RESULT=$results/python.xml tools/test_python.sh
}

# After `python`, whose environment it uses; what that did is not done again.
stage_docs() {
  local targets=(installable)
  build_for_users && tools/install_packages.sh docs programs &&
    tools/test_python.sh --install &&
    tools/run_docs.py --junit "$results/docs.xml" && tools/docs.sh
}

# Without the command, preload and occ, at which clang++ looks in `tidy`.
stage_clang() {
  configure_and_build_sanitized build-clang -DCMAKE_CXX_COMPILER=clang++ \
    -DCMAKE_C_COMPILER=clang &&
    run_sanitized clang build-clang
}

stage_tidy() {
  cmake -S . -B build-tidy -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang \
    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DOUTCORE_WERROR=ON >/dev/null &&
    tools/tidy.sh build-tidy
}

configure_and_build_sanitized() {
  local targets=(tests/all)
  configure_and_build "$@" -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O1 -g1" \
    -DOUTCORE_CHECKED=ON -DOUTCORE_SANITIZE=address,undefined
}

# Each step takes several times as long; `checked` runs all seeds.
run_sanitized() {
  local options="detect_stack_use_after_return=0:allow_user_segv_handler=1:handle_sigbus=0"
  options+=":handle_segv=0"
  OUTCORE_TEST_SHARE=10 \
    ASAN_OPTIONS=$options UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    run_tests "$@" --without-label '^nosan$'
}

stage_asan() {
  configure_and_build_sanitized build-asan && run_sanitized asan build-asan
}

# Pure computations: simulations of the pager, the policies and the disks of pools.
stage_checked() {
  local targets=(test_sim test_policy test_prefetch test_predecessor test_pool)
  configure_and_build build-checked -DOUTCORE_CHECKED=ON &&
    run_tests checked build-checked --label '^(sim|policy|prefetch|predecessor|pool)$'
}

configure_and_build_for_threads() {
  configure_and_build build-tsan -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O1 -g1 -Wno-tsan" \
    -DOUTCORE_SANITIZE=thread
}

run_for_threads() {
  # g++ 12's runtime cannot place its shadow memory where newer kernels put libraries at random.
  local launcher="setarch --addr-no-randomize"
  local options="halt_on_error=1:second_deadlock_stack=1:handle_sigbus=0:handle_segv=0"
  TSAN_OPTIONS=$options run_tests "$1" build-tsan --without-label '^nosan$' "${@:2}"
}

stage_tsan() {
  local targets=(test_stress test_region test_budget test_integration)
  configure_and_build_for_threads &&
    run_for_threads tsan --label '^(stress|region|budget|integration)$'
}

stage_tsan-all() {
  local targets=(tests/all)
  configure_and_build_for_threads && run_for_threads tsan-all
}

stage_unprivileged() {
  ((EUID == 0)) || skip "needs root, to set vm.unprivileged_userfaultfd and to become nobody" ||
    return
  build_for_users || return 1
  RESULT=$results/unprivileged.xml JOBS=$tests_at_once TEST_SECONDS_MAX=$test_seconds_max \
    tests/unprivileged/run.sh build
}

stage_masked() {
  local kernel status=0
  build_for_users || return 1
  for kernel in 5.15 6.1 6.8; do
    echo "-- OUTCORE_KERNEL=$kernel"
    OUTCORE_KERNEL=$kernel run_tests "masked-$kernel" build --label '^(conformance|integration)$' ||
      status=1
  done
  return "$status"
}

stage_install() {
  build_for_users && tests/install/run.sh
}

stage_qemu() {
  build_for_users && RESULT=$results/qemu.xml tests/qemu/run.sh build
}

stage_wheel() {
  tools/test_wheel.sh
}

stage_deb() {
  ((EUID == 0)) || skip "needs root, to make a clean root" || return
  tools/test_deb.sh
}

# run_stage NAME: heading, the stage, its time, its status for the sum.
run_stage() {
  local name=$1 began=$SECONDS status=0 verdict
  rm -f "$results/$name"{.xml,-*.xml,.status}
  printf '\n== %s: %s\n' "$name" "$(describe "$name")"
  skip_reason=
  "stage_$name" || status=$?
  case $status in
  0) verdict=passed ;;
  77) verdict="skipped: $skip_reason" ;;
  *) verdict=failed ;;
  esac
  echo "$verdict" >"$results/$name.status"
  echo "$((SECONDS - began))" >"$results/$name.seconds"
  printf '== %s: %s, %d s\n' "$name" "$verdict" "$((SECONDS - began))"
  [[ $verdict != failed ]]
}

# run_row STAGE… : one after the other, all of them. Fails if one did.
run_row() {
  local name status=0
  for name in "$@"; do run_stage "$name" || status=1; done
  return "$status"
}

# The same; what each says comes when it has ended.
run_row_beside() {
  local name status=0
  for name in "$@"; do
    run_stage "$name" >"$results/$name.log" 2>&1 || status=1
    cat "$results/$name.log"
  done
  return "$status"
}

stages=("$@")
((${#stages[@]})) || stages=("${default_stages[@]}")
if [[ ${stages[0]} == list ]]; then
  for name in "${all_stages[@]}"; do printf '%-14s%s\n' "$name" "$(describe "$name")"; done
  exit 0
fi
for name in "${stages[@]}"; do
  if [[ " ${all_stages[*]} " != *" $name "* ]]; then
    echo "test.sh: '$name' is not a stage; there are: ${all_stages[*]}" >&2
    exit 2
  fi
done
tools/install_packages.sh build test engines || exit 1
mkdir -p "$results"
[[ $# != 0 ]] || rm -f "$results"/*

status=0
if (($#)); then
  run_row "${stages[@]}" || status=1
else
  run_row "${first_stages[@]}" || status=1
  printf '\n== beside the next stages: %s\n' "${waiting_stages[*]}"
  set -m # a group of its own, which ends with us
  run_row_beside "${waiting_stages[@]}" </dev/null &
  beside=$!
  set +m
  trap 'kill -TERM -- "-$beside" 2>/dev/null; exit 130' INT TERM
  run_row "${computing_stages[@]}" || status=1
  wait "$beside" || status=1
fi

printf '\n'
for name in "${stages[@]}"; do
  printf '%-14s%5d s  %s\n' "$name" "$(cat "$results/$name.seconds")" \
    "$(cat "$results/$name.status")"
done
tools/slowest_tests.py "$results" "${stages[@]}"
printf 'in %d min %d s\n' "$((SECONDS / 60))" "$((SECONDS % 60))"
tools/count_tests.py "$results" "${stages[@]}"
exit "$status"
