#!/bin/bash
# sort.sh : GNU sort, whose buffer is several times the budget and lies on scratch space.
BUDGET=12M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs sort

# Twelve logs, each in order, one after the other: merging reads a few of them side by side.
python3 - >log.txt <<'END'
import hashlib
for host in range(12):
    time = 0
    for number in range(30_000):
        digest = hashlib.md5(b"%d %d" % (host, number)).hexdigest()
        time += int(digest[:3], 16)
        print(f"{time:012d} host{host:02d} {digest}{digest[::-1]}")
END
options=(-S 80M --parallel=2)
sort "${options[@]}" log.txt >plain.txt
rt --alloc 1M -- sort "${options[@]}" log.txt >under.txt
expect_allocated
expect_same_bytes "sorted" plain.txt under.txt
sort --check under.txt
