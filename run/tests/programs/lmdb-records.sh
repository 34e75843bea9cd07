#!/bin/bash
# lmdb-records.sh : random reads of an LMDB database, with the program of `make bench-doors`, which
# compares each record; and its second start, which has learnt from the first.
BUDGET=4M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs_python
export PYTHONDONTWRITEBYTECODE=1
program=$here/../../../bench/doors/records.py

# answer WHAT LINE: of reads that were right.
answer() {
  "$PYTHON" -c '
import json, sys
said = json.loads(sys.argv[1])
print(said["answer"] if said["is_right"] else "")' "$2" || fail "$1: it does not run"
}

"$PYTHON" "$program" make db 16777216
for advice in default random; do
  plain=$(answer plain "$("$PYTHON" "$program" read db "$advice" 6000)")
  under=$(answer under "$(rt -- "$PYTHON" "$program" read db "$advice" 6000)")
  expect_taken "*/db/data.mdb"
  expect_equal "reads, $advice" "$plain" "$under"
done
for start in first second; do
  under=$(answer "$start" "$(rt --learn db.learnt -- "$PYTHON" "$program" read db default 1000)")
  [[ ${PLAIN-} == 1 || -s db.learnt ]] || fail "the $start start has left no profile"
  [[ $start == first ]] || expect_equal "the second start" "$first" "$under"
  first=$under
done
