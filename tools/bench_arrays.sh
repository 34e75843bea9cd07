#!/bin/bash
# bench_arrays.sh [--quick] [--repeats N] [--rows NAME…] [--size 1G] [--processes N…] [--json]
# [--list] : installs the libraries of parallel I/O, builds bench/rivals into build/rivals and
# prints its table: named arrays beside these libraries and plain files. The data is made in a
# folder below BENCH_DIR (default: build/), which is removed again, also after an interrupt. Runs
# are kept in build/bench-arrays.json. Needs root, or sudo, only to install. A library that cannot
# be installed is said in the table.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/bench_lib.sh
table=bench/rivals/table.py
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
list_rows "$table" "$@"

exec 3>&1
[[ " $* " != *" --json "* ]] || exec 1>&2 # the lines alone go to standard output
tools/install_packages.sh build mpi
for library in hdf5 netcdf pnetcdf adios adios2; do
  tools/install_packages.sh "rivals-$library" ||
    echo "bench-arrays: $library is not here; the table says so" >&2
done

into=build/rivals
mkdir -p "$into"
if ! cmp -s bench/rivals/requirements.txt "$into/requirements.txt"; then
  echo "-- ADIOS2, from PyPI"
  rm -rf "$into/adios2-wheel"
  if python3 -m pip install --quiet --no-deps --only-binary :all: --target "$into/adios2-wheel" \
    -r bench/rivals/requirements.txt >"$into/pip.log" 2>&1
  then
    cp bench/rivals/requirements.txt "$into/requirements.txt"
  else
    tail -n 1 "$into/pip.log" >&2
  fi
fi
cmake -S . -B build -G Ninja >/dev/null
cmake --build build -j "${JOBS:-$(nproc)}" --target outcore
library=$(find build -maxdepth 1 -name 'liboutcore.*' | head -n 1)
bench/rivals/build.sh "$library" "$into"

bench_dir=${BENCH_DIR:-build}
need_space bench-arrays "$bench_dir" 3072 BENCH_DIR
folder=$(mktemp -d "$(realpath "$bench_dir")/arrays-XXXXXX")
on_exit 'rm -rf "$folder"'

run_table python3 "$table" --programs "$into" --folder "$folder" \
  --json-file build/bench-arrays.json "$@" >&3
