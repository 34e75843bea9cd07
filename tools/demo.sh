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
exec "${as_root[@]}" build/bin/outcore demo "$@"
