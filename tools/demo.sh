#!/bin/bash
# demo.sh [OPTION…] : installs what is missing, builds, and runs `outcore demo`, which takes the
# options; its page is build/demo.html. The limits that make mmap a fair rival are memory cgroups:
# it runs as root, by sudo if need be.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install_packages.sh build demo
mkdir -p build
command=build/bin/outcore
if [[ ! -x $command ]]; then
  # The command alone, without debugging information: half of what `make build` compiles.
  echo "compiling the command (some minutes on two processors)"
  cmake -S . -B build-demo -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O2 \
    -DCMAKE_C_FLAGS=-O2 -DOUTCORE_TESTS=OFF \
    -DOUTCORE_FORMATS_WITHOUT="npz;hdf5;netcdf;png;zarr" >/dev/null
  cmake --build build-demo -j "${JOBS:-$(nproc)}" --target outcore_cli
  command=build-demo/bin/outcore
fi
as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || {
    echo "demo: needs root to limit memory: run it as root, or install sudo" >&2
    exit 1
  }
  as_root=(sudo --preserve-env=TMPDIR)
fi

# The graph of the distribution's own packages, if apt has the index.
edges=build/debian-packages.edges
if [[ -z $(apt-cache dumpavail 2>/dev/null | head -c 1) ]]; then
  echo "fetching the package index"
  "${as_root[@]}" apt-get update -qq || true
fi
graph=()
if tools/package_graph.py >"$edges" && [[ -s $edges ]]; then
  graph=(--edges "$edges")
else
  echo "demo: apt has no package index here: the graph of packages is left out" >&2
fi
exec "${as_root[@]}" "$command" demo "${graph[@]}" --page build/demo.html "$@"
