#!/bin/bash
# test_wheel.sh : builds the wheel of tools/wheel.sh, and installs it where no compiler is: into a
# fresh environment whose programs see an empty PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/check_lib.sh
wheel=$(tools/wheel.sh | tail -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/venv"
alone() { env -i PATH="$work/venv/bin" HOME="$work" http_proxy="${http_proxy-}" \
  https_proxy="${https_proxy-}" PIP_INDEX_URL="${PIP_INDEX_URL-https://pypi.org/simple}" \
  PIP_DISABLE_PIP_VERSION_CHECK=1 "$@"; }
cat >"$work/small.py" <<'PYTHON'
import os
import shutil

import numpy as np
import outcore

assert shutil.which("cc") is None and shutil.which("gcc") is None
os.chdir(os.path.dirname(os.path.abspath(__file__)))
with outcore.open("a.npy", "w", shape=(8192, 1024), dtype="f4", budget="8MiB") as a:
    a[...] = 1
    assert a.sum() == 8192 * 1024, a.sum()
    assert a.stats()["used_bytes_max"] <= 8 << 20
assert np.load("a.npy", mmap_mode="r")[8191, 1023] == 1
with outcore.Arrays("run.oca", "w") as out:
    out.store("t", np.arange(1e5).reshape(100, 1000))
assert outcore.Arrays("run.oca")["t"][99, 7] == 99007
PYTHON

case $wheel in
*-manylinux_*) echo "  ok: ${wheel##*/} names a version of glibc" ;;
*) echo "  FAILED: ${wheel##*/} is for this machine alone" && exit 1 ;;
esac
check "pip installs it without a compiler" alone pip install --only-binary :all: "$wheel"
check "a small program works" alone python "$work/small.py"
check "the command works" alone outcore info
check "an array is exported" alone outcore arrays export "$work/run.oca" t --to "$work/t.zarr"
check "outcore run takes its library along" alone outcore run --budget 4M --min-size 1M -- \
  python -c "import mmap,os;f=os.open('$work/a.npy',0);print(mmap.mmap(f,0,prot=1)[1<<20])"
