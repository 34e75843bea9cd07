#!/bin/bash
# demo.sh [OPTION…] : installs what is missing, builds, and runs `outcore demo`, which takes the
# options. The limits that make mmap a fair rival are memory cgroups: it runs as root, by sudo if
# need be.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install_packages.sh build demo
make --no-print-directory build
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
exec "${as_root[@]}" build/bin/outcore demo "${graph[@]}" "$@"
