#!/bin/bash
# numpy.sh : numpy.memmap in all modes, and np.load with mmap_mode; 128 MiB each.
BUDGET=24M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs_python

for way in plain under; do
  mkdir "$way"
  "$PYTHON" "$here/numpy_memmap.py" save "$way/array.npy"
done
# In this order: each mode finds what those before it wrote.
for mode in w+ r+ r load; do
  file=array.dat
  [[ $mode != load ]] || file=array.npy
  plain=$("$PYTHON" "$here/numpy_memmap.py" "$mode" "plain/$file")
  under=$(rt -- "$PYTHON" "$here/numpy_memmap.py" "$mode" "under/$file")
  expect_taken "*/under/$file"
  expect_equal "mode $mode" "$plain" "$under"
done
# Copy on write: private and writable, so it is the kernel's.
plain=$("$PYTHON" "$here/numpy_memmap.py" c plain/array.dat)
under=$(rt -- "$PYTHON" "$here/numpy_memmap.py" c under/array.dat)
expect_equal "mode c" "$plain" "$under"
expect_same_bytes "the files of w+, r+ and c" plain/array.dat under/array.dat
