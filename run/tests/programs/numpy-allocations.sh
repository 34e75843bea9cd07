#!/bin/bash
# numpy-allocations.sh : arrays of several times the budget that no file holds.
BUDGET=24M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs_python

plain=$("$PYTHON" "$here/numpy_arrays.py")
under=$(rt --alloc 1M -- "$PYTHON" "$here/numpy_arrays.py")
expect_allocated
expect_equal "arrays" "$plain" "$under"
[[ $under == "15000000.0 "* ]] || fail "the sum of 15,000,000 ones: $under"
