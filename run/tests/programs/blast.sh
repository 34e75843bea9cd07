#!/bin/bash
# blast.sh : blastn scans a mapped database of 120 million bases, four in a byte.
BUDGET=8M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs makeblastdb blastn

python3 "$here/make_genomes.py" 12 10000000 12
makeblastdb -in genomes.fa -dbtype nucl -out genomes -blastdb_version 5 >makeblastdb.txt
search() { "$@" blastn -db genomes -query reads.fa -outfmt 6 -num_threads 2; }
plain=$(search env)
under=$(search rt --)
expect_taken '*/genomes.nsq'
expect_equal "hits" "$plain" "$under"
# The best hit of each read.
# shellcheck disable=SC2016  # awk's fields
best='!($1 in seen) { seen[$1]; split($2, name, "|"); print $1 "\t" name[2] }'
best() { sort -k 1,1 -k 12,12gr | awk "$best"; }
expect_equal "reads of known origin" "$(sort truth.tsv)" "$(best <<<"$under")"
