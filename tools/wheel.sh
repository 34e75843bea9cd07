#!/bin/bash
# wheel.sh : builds a wheel that installs without a compiler: build/wheels/outcore-*.whl.
# The libraries that Outcore links to go into it, so it needs the C library alone, of this
# machine's version or newer. Tools come from PyPI, into build/wheel-tools. $PYTHON: whose wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
source_dir=$PWD
tools=$source_dir/build/wheel-tools
plain=$source_dir/build/wheel-plain
wheels=$source_dir/build/wheels
python=${PYTHON:-python3}
jobs=${JOBS:-$(nproc)}
export CCACHE_BASEDIR=$source_dir CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
export CMAKE_BUILD_PARALLEL_LEVEL=$jobs CMAKE_GENERATOR=Ninja
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

wanted="$("$python" --version) $(sha256sum <tools/requirements-wheel.txt)"
if [[ "$(cat "$tools/stamp" 2>/dev/null)" != "$wanted" ]]; then
  echo "-- tools of tools/requirements-wheel.txt"
  rm -rf "$tools"
  mkdir -p "$source_dir/build"
  "$python" -m venv "$tools"
  "$tools/bin/pip" install --quiet -r tools/requirements-wheel.txt
  echo "$wanted" >"$tools/stamp"
fi
PATH=$tools/bin:$PATH

echo "-- the wheel"
rm -rf "$plain"
# As the tests of the Python package compile it: the objects are the same. Debugging information is
# taken out below. HDF5 and NetCDF are left to h5py and netCDF4: their libraries bring 40 others.
pip wheel --quiet --no-build-isolation --no-deps -w "$plain" \
  -C "build-dir=$source_dir/build-wheel" -C cmake.build-type=RelWithDebInfo \
  -C cmake.define.OUTCORE_WERROR=ON \
  -C cmake.define.OUTCORE_FORMATS_WITHOUT="hdf5;netcdf" .

echo "-- its libraries"
mkdir -p "$wheels"
rm -f "$wheels"/outcore-*.whl
if ! auditwheel repair --strip -w "$wheels" "$plain"/outcore-*.whl >"$plain/auditwheel.log" 2>&1
then
  tail -n 20 "$plain/auditwheel.log" >&2
  exit 1
fi
ls "$wheels"/outcore-*.whl
