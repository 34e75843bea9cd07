#!/bin/bash
# format.sh [--check] : formats all C++ and C by .clang-format, or only says which files differ.
set -euo pipefail
cd "$(dirname "$0")/.."
formatter=$(command -v clang-format-14 || command -v clang-format) || {
  echo "format: no clang-format 14 here: tools/install_packages.sh test" >&2
  exit 1
}
folders=(include core far checkpoints heaps arrays run python umbrella cli bench examples tests)
mapfile -t files < <(find "${folders[@]}" -regex '.*\.\(h\|cc\|c\)' 2>/dev/null | sort)
if [[ ${1-} != --check ]]; then
  "$formatter" -i "${files[@]}"
  exit 0
fi
differ=0
for file in "${files[@]}"; do
  if ! "$formatter" --dry-run --Werror "$file" 2>/dev/null; then
    echo "$file: not formatted: tools/format.sh"
    differ=$((differ + 1))
  fi
done
echo "format: ${#files[@]} files, $differ differ"
((differ == 0))
