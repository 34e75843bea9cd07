#!/bin/bash
# tidy.sh BUILD [FILE…] : clang-tidy by .clang-tidy over what BUILD compiles, or over these files.
# Files whose text, includes and checks have not changed since they passed are left out.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?tidy.sh: which build directory?}
shift
tidy=$(command -v clang-tidy-14 || command -v clang-tidy) || {
  echo "tidy: no clang-tidy 14 here: tools/install_packages.sh test" >&2
  exit 1
}
passed=$build/tidy
mkdir -p "$passed"
folders=(core far checkpoints heaps arrays umap run umbrella cli bench examples)
headers=$(find include "${folders[@]}" -name '*.h' -print0 2>/dev/null | sort -z |
  xargs -0 cat .clang-tidy | sha256sum)

# shellcheck disable=SC2317  # called by xargs, below
tidy_file() {
  local file=$1 stamp output
  stamp=$(cat "$file" - <<<"$headers" | sha256sum | cut -c1-32)
  [[ ! -f $passed/$stamp ]] || return 0
  if output=$("$tidy" -p "$build" --quiet "$file" 2>/dev/null) && [[ $output != *": warning: "* ]]
  then
    touch "$passed/$stamp"
  else
    printf '%s\n' "$output"
    return 1
  fi
}
export -f tidy_file
export tidy build passed headers

if (($#)); then
  files=("$@")
else
  # Those of bench/rivals are not built here: they need the libraries that they measure. Those of
  # bench/static are compiled by occ++.
  mapfile -t files < <(find "${folders[@]}" -path bench/rivals -prune -o -path bench/static -prune \
    -o -path '*/tests' -prune -o -name '*.cc' -print 2>/dev/null | sort)
fi
status=0
# shellcheck disable=SC2016  # $1 is the inner shell's
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "${JOBS:-$(nproc)}" bash -c 'tidy_file "$1"' _ ||
  status=1
echo "tidy: ${#files[@]} files, $( ((status)) && echo "problems above" || echo ok)"
exit "$status"
