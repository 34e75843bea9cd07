#!/bin/bash
# build_rivals.sh FOLDER : installs the libraries of parallel I/O and builds the programs of
# bench/rivals into FOLDER. A library that cannot be installed is named on standard error, and its
# programs are missing. Needs root, or sudo, only to install.
set -euo pipefail
cd "$(dirname "$0")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
into=${1:?the folder}

tools/install_packages.sh build mpi
for library in hdf5 netcdf pnetcdf adios adios2; do
  tools/install_packages.sh "rivals-$library" ||
    echo "build_rivals: $library is not here; the table says so" >&2
done

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
