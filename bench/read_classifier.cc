#include "bench/read_classifier.h"

#include "bench/check.h"

namespace outcore::bench {

void TaxonVotes::add(Taxon taxon) {
  for (uint32_t i = 0; i < taxa_; ++i) {
    if (votes_[i].taxon != taxon) continue;
    ++votes_[i].count;
    return;
  }
  BENCH_CHECK(taxa_ < kVotesMax);
  votes_[taxa_++] = {taxon, 1};
}

uint32_t TaxonVotes::weight_of_path(Taxon taxon, const Taxonomy& taxonomy) const {
  uint32_t weight = 0;
  for (; taxon != kNoTaxon; taxon = taxonomy.parent(taxon))
    for (uint32_t i = 0; i < taxa_; ++i)
      if (votes_[i].taxon == taxon) weight += votes_[i].count;
  return weight;
}

Taxon TaxonVotes::choose(const Taxonomy& taxonomy) const {
  Taxon chosen = kNoTaxon;
  uint32_t heaviest = 0;
  for (uint32_t i = 0; i < taxa_; ++i) {
    const Taxon taxon = votes_[i].taxon;
    const uint32_t weight = weight_of_path(taxon, taxonomy);
    if (weight > heaviest)
      chosen = taxon;
    else if (weight == heaviest)
      chosen = taxonomy.common_ancestor(chosen, taxon);
    if (weight > heaviest) heaviest = weight;
  }
  return chosen;
}

}  // namespace outcore::bench
