#!/bin/bash
# kraken2.sh : reads looked up in a hash table of 64 MiB that is mapped read-only and private.
BUDGET=12M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs kraken2
build_db=/usr/lib/kraken2/build_db
[[ -x $build_db ]] || skip "$build_db is not there, where Debian's kraken2 has it"

python3 "$here/make_genomes.py" 24 50000 1000
mkdir db
# Far more cells (of 4 bytes) than k-mers: what is looked up lies anywhere in the table.
"$build_db" -k 35 -l 31 -S 1111111111111111101010101010101 -H db/hash.k2d -t db/taxo.k2d \
  -o db/opts.k2d -n taxonomy/ -m seqid2taxid.map -c 16777216 -p 2 <genomes.fa

options=(--db db --threads 2 reads.fa)
kraken2 --output plain.txt "${options[@]}"
rt -- kraken2 --output under.txt --memory-mapping "${options[@]}"
expect_taken '*/hash.k2d'
expect_same_bytes "classification" plain.txt under.txt
expect_equal "reads of known origin" "$(cat truth.tsv)" "$(cut -f 2,3 under.txt)"
