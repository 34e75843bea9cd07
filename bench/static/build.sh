#!/bin/bash
# build.sh CLASS INTO [NAME…] : compiles the programs of bench/static (is, cg, ft, stream, himeno;
# or those named) with the arrays of a class (S, W, A, B), twice into the folder INTO: NAME-CLASS by
# occ++, and NAME-CLASS-plain by the plain compiler, in plain memory. What is newer than its sources
# and the library stays. OCC: occ++ (build/bin/occ++); its compiler is OCC_CXX. CXX: the plain one
# (c++). Both may have a word before them: "ccache c++".
set -euo pipefail
cd "$(dirname "$0")/../.."
class=${1:?build.sh: which class? S, W, A or B} into=${2:?build.sh: into which folder?}
shift 2
case $class in S | W | A | B) ;; *)
  echo "build.sh: class '$class' is unknown: use one of S, W, A, B" >&2
  exit 2
  ;;
esac
names=(is cg ft stream himeno)
# Himeno's answer is compared bit by bit with one that is computed by other code (poisson_loop.h).
flags=(-std=c++20 -O2 -ffp-contract=off -DNAS_CLASS="$class" -I. -Iinclude -pthread -Wall -Wextra
  -Wshadow)
occ=${OCC:-build/bin/occ++}
read -ra plain <<<"${CXX:-c++}"
mkdir -p "$into"

sources_of() { # sources_of NAME: what it is compiled of
  local parts
  case $1 in
  is) parts="integer_keys key_answer key_passes key_ranking" ;;
  cg) parts="conjugate_gradients gradient_passes sparse_matrix sparse_problem sparse_vectors" ;;
  ft) parts="fourier_grid fourier_passes fourier_probe fourier_transform published_checksums" ;;
  stream) parts="stream_passes" ;;
  himeno) parts="poisson_loop" ;;
  *)
    echo "build.sh: '$1' is not a program: use one of ${names[*]}" >&2
    return 2
    ;;
  esac
  printf 'bench/%s.cc ' "static/$1" static/program $parts threads
  echo cli/text.cc
}
is_new() { # is_new OUTPUT SOURCE…
  local source
  [[ -x $1 ]] || return 1
  for source in "${@:2}"; do [[ $1 -nt $source ]] || return 1; done
}
# compile OUTPUT COMPILER WORD… : object by object, so that ccache may know them, if it is there.
compile() {
  local source objects=()
  for source in "${sources[@]}"; do
    objects+=("$1.${source//\//.}.o")
    "${@:2}" "${flags[@]}" -c "$source" -o "${objects[-1]}"
  done
  # Without what the library has for debuggers, 70 MB a program.
  "${@:2}" "${flags[@]}" -Wl,-S "${objects[@]}" -o "$1"
  rm "${objects[@]}"
}

(($#)) || set -- "${names[@]}"
for name in "$@"; do
  words=$(sources_of "$name")
  read -ra sources <<<"$words"
  needed=("${sources[@]}" bench/*.h bench/static/* cli/text.h include/outcore/*.h)
  library=("${occ%/*}"/../liboutcore.*)
  is_new "$into/$name-$class" "${needed[@]}" "$occ" "${library[@]}" ||
    compile "$into/$name-$class" "$occ"
  is_new "$into/$name-$class-plain" "${needed[@]}" ||
    compile "$into/$name-$class-plain" "${plain[@]}" -Ddlm=
done
