#!/bin/bash
# columns.sh : Arrow's memory maps, read and written, and polars' scans of the same file; 64 MiB.
BUDGET=12M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs_python

"$PYTHON" "$here/columns.py" build
sum=7999998000000 # of the numbers below 4,000,000
for way in arrow polars polars-lazy; do
  plain=$("$PYTHON" "$here/columns.py" "$way")
  under=$(rt -- "$PYTHON" "$here/columns.py" "$way")
  expect_taken '*/table.arrow'
  expect_equal "$way" "$plain" "$under"
  [[ $under == "$sum "* ]] || fail "$way: the sum is not $sum: $under"
done
"$PYTHON" "$here/columns.py" create plain.bin
rt -- "$PYTHON" "$here/columns.py" create under.bin
expect_taken '*/under.bin'
expect_same_bytes "a map that was written and grown" plain.bin under.bin
