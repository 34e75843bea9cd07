#!/bin/bash
# ycsb.sh : the mixes of YCSB on LMDB and RocksDB, with the program of `make bench-doors`. It
# verifies each record that it reads, and all of them after each run.
BUDGET=2M MIN_SIZE=64K
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs_module rocksdict
export PYTHONDONTWRITEBYTECODE=1
program=$here/../../../bench/doors/ycsb_records.py
records=7000 operations=300

# field NAME LINE
field() { "$PYTHON" -c 'import json, sys; print(json.loads(sys.argv[2])[sys.argv[1]])' "$@"; }

# answer DATABASE MIX DISTRIBUTION [RUN…]: of a run, after which the database is as it was made.
answer() {
  local said
  said=$("${@:4}" "$PYTHON" "$program" run "$1" "$1" "$records" default "$2" "$3" \
    "$operations") || fail "$1, mix $2: it does not run"
  [[ $(field is_right "$said") == True ]] || fail "$1, mix $2: a record that was read is wrong"
  "$PYTHON" "$program" restore "$1" "$1" "$records" "$(field updates "$said")" \
    "$(field inserts "$said")" || fail "$1, mix $2: see above"
  field answer "$said"
}

for database in lmdb rocksdb; do
  "$PYTHON" "$program" make "$database" "$database" "$records"
  distribution=uniform # D reads the latest by zipf
  for mix in A B C D E F; do
    plain=$(answer "$database" "$mix" "$distribution" env)
    under=$(answer "$database" "$mix" "$distribution" rt --)
    expect_taken "*/$database/*"
    expect_equal "$database, mix $mix, $distribution" "$plain" "$under"
    [[ $distribution == zipf ]] && distribution=uniform || distribution=zipf
  done
done
