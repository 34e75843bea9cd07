#include "bench/lookup_answers.h"

#include "bench/random.h"

namespace outcore::bench {

void LookupAnswers::look_up(uint64_t number) {
  const Taxonomy& taxonomy = genomes_.taxonomy();
  const KmerLookup one = genomes_.lookup(number);
  const Taxon taxon = index_.find(one.kmer);
  checksum_ += mix(mix(number) + taxon);
  found_ += taxon != kNoTaxon;
  if (one.truth == kNoTaxon) return;
  // A damaged file has taxa that there are not.
  wrong_ += !taxonomy.has(taxon) || !taxonomy.is_above_or_same(taxon, one.truth);
}

}  // namespace outcore::bench
