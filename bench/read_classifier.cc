#include "bench/read_classifier.h"

#include "bench/check.h"
#include "bench/kmer.h"
#include "bench/random.h"

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

Taxon classify(const Read& read, const KmerIndex& index, const Taxonomy& taxonomy) {
  TaxonVotes votes;
  KmerWindow window;
  for (const uint8_t base : read.bases()) {
    if (!window.push(base)) continue;
    const Taxon taxon = index.find(window.canonical());
    if (taxonomy.has(taxon)) votes.add(taxon);  // a damaged file has others, too
  }
  return votes.choose(taxonomy);
}

void SampleAnswers::classify_read(uint64_t number) {
  const Taxonomy& taxonomy = genomes_.taxonomy();
  const Read read = genomes_.read(number);
  if (lists_ != nullptr) lists_->ask_for(read);
  const Taxon answer = classify(read, index_, taxonomy);
  checksum_ += mix(mix(number) + answer);
  right_ += read.truth == kNoTaxon ? answer == kNoTaxon
                                   : taxonomy.species_of(answer) == taxonomy.species_of(read.truth);
}

}  // namespace outcore::bench
