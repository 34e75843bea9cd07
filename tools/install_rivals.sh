#!/bin/bash
# install_rivals.sh FOLDER : installs the libraries of parallel I/O that named arrays are compared
# with: Debian's packages, and ADIOS2 of PyPI in FOLDER/adios2-wheel. One that cannot be installed
# is named on standard error, and is no failure. Needs root, or sudo, only to install.
set -euo pipefail
cd "$(dirname "$0")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
into=${1:?install_rivals.sh: into which folder?}

groups=(rivals-{hdf5,netcdf,pnetcdf,adios,adios2})
# All at once, if that can be: it asks apt once.
tools/install_packages.sh "${groups[@]}" 2>/dev/null ||
  for group in "${groups[@]}"; do
    tools/install_packages.sh "$group" || echo "install_rivals: ${group#*-} is not here" >&2
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
