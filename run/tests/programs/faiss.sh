#!/bin/bash
# faiss.sh : nearest neighbours in a mapped index, and in inverted lists on disk.
BUDGET=8M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs_python

"$PYTHON" "$here/faiss_index.py" build
plain=$("$PYTHON" "$here/faiss_index.py" memory)
for way in mmap mmap-ifc; do
  under=$(rt -- "$PYTHON" "$here/faiss_index.py" "$way")
  expect_taken '*/ivf.index'
  expect_equal "$way" "$plain" "$under"
done
# The lists are written through their map.
rt -- "$PYTHON" "$here/faiss_index.py" merge
# FAISS maps the lists while it has them open by stdio, so they are the kernel's.
under=$("$PYTHON" "$here/faiss_index.py" on-disk)
expect_equal "lists on disk, read plainly" "$plain" "$under"
under=$(rt -- "$PYTHON" "$here/faiss_index.py" on-disk)
expect_equal "lists on disk" "$plain" "$under"
