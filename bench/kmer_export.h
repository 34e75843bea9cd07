// Export of kmers' data: genomes, their taxonomy and reads as other classifiers read them
// (FASTA, and what NCBI's taxonomy has), with our answers beside, so that both can be compared.
#pragma once

#include <cstdint>
#include <string>

#include "bench/genomes.h"
#include "bench/kmer_index.h"
#include "outcore/result.h"

namespace outcore::bench {

// Makes the folder. Errors: EEXIST (there is something in it, which may be somebody's), and what
// the system says.
Status make_export_folder(const std::string& folder);

// Writes into such a folder: genomes.fa (a sequence a strain), seqid2taxid.map,
// taxonomy/nodes.dmp and names.dmp, reads.fa (the first `reads` of them, named r0, r1, …), and
// answers.tsv: of each read its name, the taxon that is told here, and that which is right (0:
// none). Errors: what the system says.
Status export_sample(const Genomes& genomes, const KmerIndex& index, uint64_t reads,
                     const std::string& folder);

}  // namespace outcore::bench
