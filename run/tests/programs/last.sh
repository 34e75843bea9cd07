#!/bin/bash
# last.sh : lastal looks reads up in a mapped suffix array.
BUDGET=6M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs lastdb lastal

python3 "$here/make_genomes.py" 8 750000 50
lastdb -P2 index genomes.fa
search() { "$@" lastal -P2 -f TAB index reads.fa; }
alignments() { grep -v '^#' | sort; }
plain=$(search env | alignments)
under=$(search rt -- | alignments)
expect_taken '*/index.suf' '*/index.tis'
expect_equal "alignments" "$plain" "$under"
# The best alignment of each read.
# shellcheck disable=SC2016  # awk's fields
best='!($7 in seen) { seen[$7]; split($2, name, "|"); print $7 "\t" name[2] }'
best() { sort -k 7,7 -k 1,1gr | awk "$best"; }
expect_equal "reads of known origin" "$(sort truth.tsv)" "$(best <<<"$under")"
