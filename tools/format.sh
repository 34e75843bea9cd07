#!/bin/bash
# format.sh [--check] : formats all C++ and C by .clang-format, or only says which files differ.
set -euo pipefail
cd "$(dirname "$0")/.."
formatter=$(command -v clang-format-14 || command -v clang-format) || {
  echo "format: no clang-format 14 here: tools/install_packages.sh test" >&2
  exit 1
}
folders=(include core far checkpoints heaps arrays umap run sight python umbrella cli bench examples
  tests)
mapfile -t files < <(find "${folders[@]}" -regex '.*\.\(h\|cc\|c\)' 2>/dev/null | sort)
if [[ ${1-} != --check ]]; then
  "$formatter" -i "${files[@]}"
  exit 0
fi
# Some files a process: most of its time is its start.
if said=$(printf '%s\0' "${files[@]}" |
  xargs -0 -n 32 -P "${JOBS:-$(nproc)}" "$formatter" --dry-run --Werror 2>&1); then
  echo "format: ${#files[@]} files, 0 differ"
  exit 0
fi
mapfile -t differ < <(sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error: .*/\1/p' <<<"$said" | sort -u)
((${#differ[@]})) || echo "$said" >&2 # it could not look
for file in "${differ[@]}"; do echo "$file: not formatted: tools/format.sh"; done
echo "format: ${#files[@]} files, ${#differ[@]} differ"
exit 1
