#!/bin/bash
# test.sh [STAGE…] : the default stages, or those named. `test.sh list` names them.
# Each prints a heading and its time. Results: build/results/STAGE.xml (JUnit) and STAGE.status.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
source_dir=$PWD
results=$source_dir/build/results
jobs=${JOBS:-$(nproc)}
tests_at_once=$((jobs + 1)) # many wait for servers
# Objects are the same in every checkout of the same sources, and by the same name of the compiler.
export CC=${CC:-gcc} CXX=${CXX:-g++}
export CCACHE_BASEDIR=$source_dir CCACHE_NOHASHDIR=1
# On a miss the compiler alone reads the sources; ccache would, too, and twice.
export CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros
ctest_seconds_max=${CTEST_SECONDS_MAX:-300}

# Conformance at 4 KiB and 64 KiB shows what a second compiler and sanitizers have to say, at 4 KiB
# what differs for nobody; all sizes run with g++.
large_pages='Mechanisms/.*/[A-Za-z]*1024KiB'

default_stages=(tools gcc programs python unprivileged install clang)
# By name: with these, two cores would take longer than a commit may wait.
all_stages=("${default_stages[@]}" all changed asan masked tidy tsan qemu wheel deb)

describe() {
  case $1 in
  tools) echo "layers, sizes, banned calls, formatting" ;;
  gcc) echo "build with g++ -Werror, what the sanitizers leave out" ;;
  all) echo "build with g++ -Werror, all tests" ;;
  programs) echo "real programs under \`outcore run\`" ;;
  python) echo "the Python package: built, installed, its tests and examples" ;;
  clang) echo "clang++ -Werror, checked: AddressSanitizer and UndefinedBehaviorSanitizer" ;;
  tidy) echo "clang-tidy" ;;
  asan) echo "the same sanitizers with g++" ;;
  tsan) echo "build with ThreadSanitizer" ;;
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

target=all
# configure_and_build DIRECTORY [CMAKE OPTION…]
configure_and_build() {
  local directory=$1
  shift
  cmake -S . -B "$directory" -G Ninja -DOUTCORE_WERROR=ON -DOUTCORE_TESTS=ON "$@" >/dev/null &&
    cmake --build "$directory" -j "$jobs" --target "$target" -- --quiet
}

# run_ctest NAME DIRECTORY [CTEST OPTION…]: the closing lines of ctest stay the last ones.
launcher=
run_ctest() {
  local name=$1 directory=$2
  shift 2
  $launcher ctest --test-dir "$directory" -j "$tests_at_once" --timeout "$ctest_seconds_max" \
    --output-on-failure --no-tests=error --output-junit "$results/$name.xml" "$@" |
    grep --line-buffered -v '^ *Start *[0-9]'
}

stage_tools() {
  local status=0
  tools/check_layers.py || status=1
  tools/check_circles.py || status=1
  tools/check_sizes.py || status=1
  tools/check_banned.py || status=1
  tools/format.sh --check || status=1
  return "$status"
}

# What `clang` runs with sanitizers and all checks, pages of 4 and 64 KiB, is not run a second time;
# `tools/test.sh all` does.
sanitized='^(budget|capture|container|cut|heap|integration|metrics|options|os_facts|policy'
sanitized+='|predecessor|prefetch|redis|region|store)$'

stage_gcc() {
  configure_and_build build -DCMAKE_CXX_COMPILER=g++ -DCMAKE_C_COMPILER=gcc &&
    run_ctest gcc build -LE "$sanitized" -E 'Mechanisms/.*/[A-Za-z]*(4|64)KiB'
}

stage_all() {
  configure_and_build build -DCMAKE_CXX_COMPILER=g++ -DCMAKE_C_COMPILER=gcc &&
    run_ctest all build
}

# For daily work. What the core, the public headers or the build are made of concerns every product.
stage_changed() {
  local base=${BASE:-HEAD} products folders
  products=$({
    git diff --name-only "$base" || return 1
    git ls-files --others --exclude-standard
  } | sed -n 's#/.*##p' | sort -u)
  if [[ -z $products ]]; then
    skip "nothing differs from $base"
    return
  fi
  if grep -qxE 'core|include|umbrella|cmake' <<<"$products"; then
    products=$(printf '%s\n' core far checkpoints heaps arrays run cli)
  fi
  # Folders of tests are labels of ctest; the command's are in one.
  folders=$(for product in $products; do find "$product/tests" -mindepth 1 -maxdepth 1 -type d \
    -printf '%f\n' 2>/dev/null; done; grep -qx cli <<<"$products" && echo cli; echo tools)
  echo "-- of $(xargs <<<"$products")"
  configure_and_build build -DCMAKE_CXX_COMPILER=g++ -DCMAKE_C_COMPILER=gcc &&
    run_ctest changed build -L "^($(xargs <<<"$folders" | tr ' ' '|'))\$"
}

stage_programs() {
  configure_and_build build && tools/install_packages.sh programs &&
    RESULT=$results/programs.xml run/tests/programs/run.sh
}

stage_python() {
  RESULT=$results/python.xml tools/test_python.sh
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
  local target=tests/all
  configure_and_build "$@" -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O1 -g1" \
    -DOUTCORE_CHECKED=ON -DOUTCORE_SANITIZE=address,undefined
}

run_sanitized() {
  local options="detect_stack_use_after_return=0:allow_user_segv_handler=1:handle_sigbus=0"
  options+=":handle_segv=0"
  # Each step takes several times as long; g++ runs all seeds.
  OUTCORE_SIM_SEEDS=40 VERSIONED_SEEDS=40 \
    ASAN_OPTIONS=$options UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    run_ctest "$@" -LE '^nosan$' -E "$large_pages"
}

stage_asan() {
  configure_and_build_sanitized build-asan && run_sanitized asan build-asan
}

stage_tsan() {
  local target=tests/all
  local options="halt_on_error=1:second_deadlock_stack=1:handle_sigbus=0:handle_segv=0"
  # g++ 12's runtime cannot place its shadow memory where newer kernels put libraries at random.
  local launcher="setarch --addr-no-randomize"
  configure_and_build build-tsan -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O1 -g1" \
    -DOUTCORE_SANITIZE=thread &&
    TSAN_OPTIONS=$options run_ctest tsan build-tsan -LE '^nosan$'
}

stage_unprivileged() {
  ((EUID == 0)) || skip "needs root, to set vm.unprivileged_userfaultfd and to become nobody" ||
    return
  configure_and_build build || return 1
  RESULT=$results/unprivileged.xml JOBS=$tests_at_once CTEST_SECONDS_MAX=$ctest_seconds_max \
    tests/unprivileged/run.sh build
}

stage_masked() {
  local kernel status=0
  configure_and_build build || return 1
  for kernel in 5.15 6.1 6.8; do
    echo "-- OUTCORE_KERNEL=$kernel"
    OUTCORE_KERNEL=$kernel run_ctest "masked-$kernel" build -L '^(conformance|integration)$' ||
      status=1
  done
  return "$status"
}

stage_install() {
  configure_and_build build && tests/install/run.sh
}

stage_qemu() {
  configure_and_build build && RESULT=$results/qemu.xml tests/qemu/run.sh build
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
  stage_seconds[$name]=$((SECONDS - began))
  printf '== %s: %s, %d s\n' "$name" "$verdict" "$((SECONDS - began))"
  [[ $verdict != failed ]]
}

stages=("$@")
((${#stages[@]})) || stages=("${default_stages[@]}")
if [[ ${stages[0]} == list ]]; then
  for name in "${all_stages[@]}"; do printf '%-14s%s\n' "$name" "$(describe "$name")"; done
  exit 0
fi
for name in "${stages[@]}"; do
  if [[ " ${all_stages[*]} " != *" $name "* ]]; then
    echo "test.sh: '$name' is no stage; there are: ${all_stages[*]}" >&2
    exit 2
  fi
done
tools/install_packages.sh build test engines || exit 1
mkdir -p "$results"
[[ $# != 0 ]] || rm -f "$results"/*

declare -A stage_seconds
failed=()
for name in "${stages[@]}"; do run_stage "$name" || failed+=("$name"); done

printf '\n'
for name in "${stages[@]}"; do
  printf '%-14s%5d s  %s\n' "$name" "${stage_seconds[$name]}" "$(cat "$results/$name.status")"
done
tools/slowest_tests.py "$results" "${stages[@]}"
printf 'in %d min %d s\n' "$((SECONDS / 60))" "$((SECONDS % 60))"
tools/count_tests.py "$results" "${stages[@]}"
((${#failed[@]} == 0))
