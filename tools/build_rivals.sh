#!/bin/bash
# build_rivals.sh FOLDER : installs the libraries of parallel I/O and builds the programs of
# bench/rivals into FOLDER. A library that cannot be installed is named on standard error, and its
# programs are missing. Needs root, or sudo, only to install.
set -euo pipefail
cd "$(dirname "$0")/.."
into=${1:?the folder}

tools/install_packages.sh build mpi
tools/install_rivals.sh "$into"
cmake -S . -B build -G Ninja >/dev/null
cmake --build build -j "${JOBS:-$(nproc)}" --target outcore
library=$(find build -maxdepth 1 -name 'liboutcore.*' | head -n 1)
bench/rivals/build.sh "$library" "$into"
