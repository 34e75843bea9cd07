#!/bin/bash
# run.sh : installs into fresh prefixes, static and shared, and builds programs that have nothing
# else.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
here=$source_dir/tests/install
jobs=${JOBS:-2}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
. "$source_dir/tools/check_lib.sh"

by_cmake() { # LANGUAGE: configures, builds and runs the consumer through find_package
  local built=$scratch/$kind-cmake-$1
  cmake -S "$here/$1" -B "$built" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" &&
    cmake --build "$built" -j "$jobs" && "$built/consumer" "$scratch/$kind-cmake-$1.dat"
}

by_pkg_config() { # LANGUAGE COMPILER…: the same through outcore.pc
  local language=$1 source program=$scratch/$kind-pkg-config-$1 flags
  shift
  source=$(echo "$here/$language"/main.c*)
  flags=$(PKG_CONFIG_PATH="$libdir/pkgconfig" pkg-config --cflags --libs outcore) || return
  # shellcheck disable=SC2086  # flags are words
  "$@" -Wall -Werror "$source" -o "$program" $flags && "$program" "$program.dat"
}

header_alone() { # HEADER: compiles as the only line of a program
  local language=c++ standard=c++20 compiler=${CXX:-g++}
  case $1 in
  outcore.h | dlm.h | ssd.h | arrays_c.h) language=c standard=c11 ;;
  arrays_mpi.h) compiler=mpicxx ;;
  arrays_mpi_c.h) compiler=mpicc language=c standard=c11 ;;
  esac
  # The headers of Open MPI for C++, which it has dropped, have warnings of their own.
  echo "#include <outcore/$1>" |
    "$compiler" -DOMPI_SKIP_MPICXX -x "$language" -std="$standard" -Wall -Wextra -Werror \
      -fsyntax-only -I"$prefix/include" -
}

# Each alone, several at once; those of what is not here are left out.
headers_alone() {
  local header name running=0 status=0
  for header in "$prefix"/include/outcore/*.h; do
    name=${header##*/}
    # Those need the program's MPI, which is not among our packages.
    [[ $name != arrays_mpi*.h ]] || command -v mpicxx >/dev/null || continue
    # These need cereal, which is of our tests alone.
    if [[ $name =~ ^(arrays_objects|object_archive|object_name)\.h$ ]]; then
      echo '#include <cereal/cereal.hpp>' |
        "${CXX:-g++}" -x c++ -fsyntax-only - 2>/dev/null || continue
    fi
    if ((running == jobs)); then
      wait -n || status=1
      running=$((running - 1))
    fi
    check "$name compiles alone" header_alone "$name" &
    running=$((running + 1))
  done
  while ((running > 0)); do
    wait -n || status=1
    running=$((running - 1))
  done
  return "$status"
}

completion_works() {
  # shellcheck disable=SC2016  # the inner shell's
  bash -c 'source "$1" && COMP_WORDS=("$2" be) COMP_CWORD=1 && _outcore &&
    [[ "${COMPREPLY[*]}" == bench ]] &&
    COMP_WORDS=("$2" bench sort --bu) COMP_CWORD=3 && _outcore &&
    [[ "${COMPREPLY[*]}" == --budget ]]' \
    _ "$prefix/share/bash-completion/completions/outcore" "$prefix/bin/outcore"
}

man_page_is_clean() {
  local page=$prefix/share/man/man1/outcore.1 warnings
  [[ -s $page ]] || return 1
  command -v man >/dev/null || return 0
  warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null)
  echo "$warnings"
  [[ -z $warnings ]]
}

# Every option that --help tells is in the manual; the completions ask --help themselves.
manual_is_complete() {
  local commands=("" info demo bench run check residency warm evict) workload option text status=0
  for workload in random-io scan sort bfs components pagerank alloc map-lookup stream jacobi \
    graph-construct three-parts images kmers ycsb matmul is cg ft compare report table ingest \
    generate checkpoint arrays; do
    commands+=("bench $workload")
  done
  commands+=(top stat "heap check" "heap info" "buffers ls" "buffers resize" "buffers end" serve)
  commands+=("arrays ls" "arrays info" "arrays export" "arrays import")
  commands+=("arrays show" "arrays verify")
  text=$(sed 's/\\-/-/g' "$prefix/share/man/man1/outcore.1")
  # shellcheck disable=SC2086  # a command is one word or two
  for option in $(for c in "${commands[@]}"; do "$prefix/bin/outcore" $c --help; done |
    grep -oE -- '--[a-z][a-z-]*' | sort -u); do
    grep -qE -- "$option([^a-z-]|$)" <<<"$text" || { echo "manual: no $option"; status=1; }
  done
  return "$status"
}

# Every link of the installed documents to a file leads to one.
links_hold() {
  local page link status=0
  while IFS= read -r page; do
    while IFS= read -r link; do
      [[ -e ${page%/*}/$link ]] || { echo "${page#"$prefix"/}: no $link"; status=1; }
    done < <(sed '/^```/,/^```/d' "$page" | grep -oE '\]\([^):# ]+[)#]' |
      sed -E 's/^..|.$//g')
  done < <(find "$prefix/share/doc/outcore" -name '*.md')
  [[ -e $prefix/share/doc/outcore/README.md ]] || { echo "no README.md"; status=1; }
  return "$status"
}

tools_are_there() { # what --help names, and the manual
  local tools=$prefix/share/outcore/tools
  [[ -x $tools/package_graph.py && -x $tools/fast_device.sh ]] &&
    printf 'Package: a\nDepends: b\n' >"$scratch/packages" &&
    [[ $("$tools/package_graph.py" "$scratch/packages" | tail -n 1) == "0 1" ]]
}

by_occ() { # COMPILER: the example with dlm arrays, by the installed occ
  local program=$scratch/$kind-occ-$1
  "$prefix/bin/occ" --cc="$1" -Wall -Werror -O2 -DN=2000 \
    "$prefix/share/doc/outcore/examples/04_matrix_vector.c" -o "$program" &&
    OUTCORE_BUDGET=8M "$program"
}

by_dlm_header() { # LANGUAGE SUFFIX COMPILER…: DLM_ARRAY without occ
  local program=$scratch/$kind-dlm-$1 sources flags
  sources=$(echo "$source_dir"/heaps/tests/occ/programs/header"$2")
  shift 2
  flags=$(PKG_CONFIG_PATH="$libdir/pkgconfig" pkg-config --cflags --libs outcore) || return
  # shellcheck disable=SC2086  # words
  "$@" -Wall -Wextra -Werror $sources -o "$program" $flags && OUTCORE_BUDGET=4M "$program"
}

by_umap() { # a program that was written for UMap
  local program=$scratch/$kind-umap flags
  flags=$(PKG_CONFIG_PATH="$libdir/pkgconfig" pkg-config --cflags --libs outcore) || return
  # shellcheck disable=SC2086  # words
  "${CC:-gcc}" -std=gnu11 -Wall -Wextra -Werror "$source_dir/umap/tests/umap/programs/sort.c" \
    -o "$program" $flags && UMAP_BUFSIZE=256 "$program" "$program.dat" 100000
}

by_dlopen() {
  local program=$scratch/$kind-dlopen
  "${CC:-gcc}" -std=gnu11 -Wall -Wextra -Werror -I"$prefix/include" "$here/dlopen/main.c" \
    -o "$program" -ldl && "$program" "$(echo "$libdir"/liboutcore.so)" "$program.dat"
}

check_installation() {
  local status=0
  libdir=$(dirname "$(find "$prefix" -name 'liboutcore.*' | head -n 1)")
  export LD_LIBRARY_PATH=
  [[ $kind == static ]] || LD_LIBRARY_PATH=$libdir
  check "the command runs" "$prefix/bin/outcore" --version || status=1
  check "the man page is clean" man_page_is_clean || status=1
  check "the manual names every option" manual_is_complete || status=1
  check "the completion works" completion_works || status=1
  check "the documents' links hold" links_hold || status=1
  check "the command's tools are there" tools_are_there || status=1
  if [[ $kind == static ]]; then
    headers_alone || status=1
  else
    check "the headers are those of the static one" \
      diff -r "$scratch/static/include" "$prefix/include" || status=1
  fi
  check "C++ by find_package" by_cmake cxx || status=1
  check "C++ by pkg-config" by_pkg_config cxx "${CXX:-g++}" -std=c++20 || status=1
  check "C by find_package" by_cmake c || status=1
  check "C by pkg-config" by_pkg_config c "${CC:-gcc}" -std=c11 || status=1
  [[ $kind == static ]] || check "C by dlopen" by_dlopen || status=1
  check "C by occ, gcc" by_occ gcc || status=1
  ! command -v clang >/dev/null || check "C by occ, clang" by_occ clang || status=1
  check "C by DLM_ARRAY" by_dlm_header c "_*.c" "${CC:-gcc}" -std=gnu11 || status=1
  check "C++ by DLM_ARRAY" by_dlm_header cxx ".cc" "${CXX:-g++}" -std=c++17 || status=1
  check "C by UMap's header" by_umap || status=1
  return "$status"
}

# As the README says it, from sources beside which nothing was ever built.
by_make() {
  local fresh=$scratch/fresh
  mkdir "$fresh"
  tar -C "$source_dir" --exclude='./build*' --exclude=./.git -c . | tar -x -C "$fresh"
  local -x CCACHE_BASEDIR=$fresh # what is built afterwards shares its objects with the checkout
  # Objects of other options would be others.
  check "make build" make -C "$fresh" JOBS="$jobs" CMAKE_OPTIONS=-DOUTCORE_WERROR=ON build ||
    return
  for name in outcore occ occ++ liboutcore_preload.so; do
    check "make build makes $name" test -e "$fresh/build/bin/$name" || return
  done
  check "make install" make -C "$fresh" JOBS="$jobs" PREFIX="$prefix" install
}

by_cmake_shared() {
  local build=$source_dir/build-shared
  cmake -S "$source_dir" -B "$build" -G Ninja -DBUILD_SHARED_LIBS=ON -DOUTCORE_TESTS=OFF \
    -DOUTCORE_WERROR=ON >/dev/null
  cmake --build "$build" -j "$jobs" -- --quiet
  cmake --install "$build" --prefix "$prefix" >/dev/null
}

status=0
for kind in static shared; do
  echo "-- $kind"
  prefix=$scratch/$kind
  if [[ $kind == static ]]; then by_make; else by_cmake_shared; fi
  check_installation || status=1
done
exit "$status"
