#!/bin/bash
# test_python.sh [--install | PYTEST ARGUMENT…] : builds and installs the wheel in its own
# environment, and runs its tests and its doctests, or (--install) nothing more. $RESULT: where the
# JUnit file goes. $PYTHON_WORK: the environment and the wheel's objects, by default build/python.
# What did not change is kept, so a second run takes as long as the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
source_dir=$PWD
work=${PYTHON_WORK:-$source_dir/build/python}
# As deep as build/: only so ccache finds its objects, whose paths it knows from here.
objects=${PYTHON_WORK:+$work/objects}
objects=${objects:-$source_dir/build-wheel}
python=${PYTHON:-python3}
jobs=${JOBS:-$(nproc)}
export CCACHE_BASEDIR=$source_dir CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
export CMAKE_BUILD_PARALLEL_LEVEL=$jobs
export CMAKE_GENERATOR=Ninja PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

# has_changed STAMP HASH: true unless the stamp says that this was done already.
has_changed() { [[ "$(cat "$1" 2>/dev/null)" != "$2" ]]; }

mkdir -p "$work"
venv=$work/venv
requirements=python/requirements-test.txt
wanted=$("$python" --version)-$(sha256sum <"$requirements")
if has_changed "$work/requirements.stamp" "$wanted"; then
  echo "-- packages of $requirements"
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/pip" install --quiet -r "$requirements"
  echo "$wanted" >"$work/requirements.stamp"
  rm -f "$work/wheel.stamp"
fi

inputs=(CMakeLists.txt LICENSE README.md pyproject.toml umbrella
  bench cmake cli core far checkpoints heaps arrays umap run sight
  include python)
wanted=$(find "${inputs[@]}" -type f -not -name '*.pyc' -print0 | sort -z |
  xargs -0 sha256sum | sha256sum)
if has_changed "$work/wheel.stamp" "$wanted"; then
  echo "-- the wheel"
  # Compiled as the library's own tests are: the objects are the same.
  rm -f "$work"/wheels/*.whl
  PATH=$venv/bin:$PATH "$venv/bin/pip" wheel --quiet --no-build-isolation --no-deps \
    -w "$work/wheels" -C "build-dir=$objects" -C cmake.build-type=RelWithDebInfo \
    -C install.strip=true \
    -C cmake.define.OUTCORE_WERROR=ON .
  "$venv/bin/pip" install --quiet --force-reinstall --no-deps "$work"/wheels/*.whl
  echo "$wanted" >"$work/wheel.stamp"
fi

[[ ${1-} != --install ]] || exit 0

report=()
if [[ -n ${RESULT-} ]]; then
  mkdir -p "$(dirname "$RESULT")"
  report=("--junitxml=$(realpath "$RESULT")" -o junit_suite_name=python)
fi
echo "-- tests and doctests"
what=("$@")
(($#)) || what=(python/tests --pyargs outcore)
PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" -m pytest -c python/tests/pytest.ini \
  --rootdir "$source_dir" --doctest-modules "${report[@]}" "${what[@]}"
