#!/bin/bash
# kmers.sh : the reads of `outcore bench kmers`, told by kraken2 from the same genomes: as good as
# all get the same taxon. Both take each 20-mer for itself; kraken2's table may confuse two.
BUDGET=12M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs kraken2
build_db=/usr/lib/kraken2/build_db
[[ -x $build_db ]] || skip "$build_db is not there, where Debian's kraken2 has it"

"$OUTCORE" bench kmers --size 8M --budget 2M --reads 1000 --memory outcore --dir . --export sample
cd sample
mkdir db
"$build_db" -k 20 -l 20 -H db/hash.k2d -t db/taxo.k2d -o db/opts.k2d -n taxonomy/ \
  -m seqid2taxid.map -c 16777216 -p 2 <genomes.fa
options=(--db db --minimum-hit-groups 1 reads.fa)
kraken2 --output plain.txt "${options[@]}"
rt -- kraken2 --output under.txt --memory-mapping "${options[@]}"
expect_taken '*/hash.k2d'
expect_same_bytes "classification" plain.txt under.txt
same=$(join -t $'\t' <(sort answers.tsv) <(cut -f 2,3 under.txt | sort) |
  awk -F '\t' '$2 == $4 { same++ } END { print same }')
((same >= 990)) || fail "of 1000 reads kraken2 tells only $same as bench kmers does"
echo "same: $same of 1000 reads have the same taxon"
