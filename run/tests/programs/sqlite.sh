#!/bin/bash
# sqlite.sh : a database of 30 MiB with mmap_size, by write-ahead log and by rollback journal.
BUDGET=8M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs sqlite3

rows=75000
create="CREATE TABLE t(i INTEGER PRIMARY KEY, s TEXT);
  WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < $rows)
    INSERT INTO t SELECT x, printf('%0300d', x * 7919 % 1000003) FROM c;
  CREATE INDEX by_end ON t(substr(s, -9));"
look="SELECT count(*), sum(i), sum(length(s)), sum(CAST(substr(s, -9) AS INTEGER)) FROM t;
  SELECT i, substr(s, -9) FROM t WHERE i IN (5, 20003, 37777, 61728, 75000);
  SELECT count(*) FROM t WHERE substr(s, -9) BETWEEN '000400000' AND '000401000';"
change() { echo "UPDATE t SET s = printf('%0$1d', i * $2) WHERE i % 10 = $3;"; }

# session RUN… DATABASE: three processes, one after the other, each with the file mapped.
session() {
  local run=("${@:1:$#-1}") database=${*: -1} map="PRAGMA mmap_size=1073741824;"
  "${run[@]}" sqlite3 "$database" "$map PRAGMA journal_mode=WAL; $create
    PRAGMA wal_checkpoint(TRUNCATE);"
  "${run[@]}" sqlite3 "$database" "$map $look $(change 350 3 0) $look
    PRAGMA integrity_check;"
  [[ ${#run[@]} == 1 ]] || expect_taken "*/$database" >&2
  "${run[@]}" sqlite3 "$database" "$map PRAGMA journal_mode=DELETE; $(change 400 5 1)
    DELETE FROM t WHERE i % 10 = 2; $look PRAGMA integrity_check;"
  [[ ${#run[@]} == 1 ]] || expect_taken "*/$database" >&2
}

plain=$(session env plain.db)
under=$(session rt -- under.db)
expect_equal "all answers" "$plain" "$under"
# Of every ten rows one is gone, one is longer by 50 and one by 100.
expect_equal "what is left" "67500|$((67500 * 300 + 7500 * 150))" \
  "$(sqlite3 under.db 'SELECT count(*), sum(length(s)) FROM t')"
expect_equal "all content, read plainly" "$(sqlite3 plain.db .sha3sum)" \
  "$(sqlite3 under.db .sha3sum)"
