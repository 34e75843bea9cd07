#!/bin/bash
# bowtie2.sh : reads aligned against an index whose files are mapped, some of them twice.
BUDGET=3M MIN_SIZE=64K
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs bowtie2 bowtie2-build

python3 "$here/make_genomes.py" 4 1000000 150
bowtie2-build -q --bmaxdivn 2 genomes.fa index # few large blocks: quicker
align() { "${@:2}" -f -x index -U reads.fa -S "$1" -p 2 --seed 1; }
alignments() { grep -v '^@' "$1" | sort; }
align plain.sam bowtie2
align under.sam rt -- bowtie2 --mm
# Others of the index are mapped, and hardly touched.
expect_taken '*/index.1.bt2' '*/index.rev.1.bt2'
expect_equal "alignments" "$(alignments plain.sam)" "$(alignments under.sam)"
expect_equal "reads of known origin" "$(sort truth.tsv)" \
  "$(alignments under.sam | awk '{ split($3, name, "|"); print $1 "\t" name[2] }')"
