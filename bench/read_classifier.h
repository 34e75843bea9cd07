// ReadClassifier: which organism a read is of, by the taxa of all its k-mers, as LMAT and Kraken
// tell it: of all paths from the root to a taxon, that with most k-mers on it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "bench/genomes.h"
#include "bench/kmer.h"
#include "bench/page_lists.h"
#include "bench/random.h"
#include "bench/taxonomy.h"

namespace outcore::bench {

// How many k-mers of one read belong to each taxon. It belongs to one thread.
class TaxonVotes {
 public:
  static constexpr uint32_t kVotesMax = kReadBasesMax - kKmerBases + 1;

  // REQUIRES: at most kVotesMax calls
  void add(Taxon taxon);
  // The lowest taxon of the heaviest path; if several weigh as much, what they have in common.
  // kNoTaxon: there were no votes.
  Taxon choose(const Taxonomy& taxonomy) const;

 private:
  struct Vote {
    Taxon taxon;
    uint32_t count;
  };
  uint32_t weight_of_path(Taxon taxon, const Taxonomy& taxonomy) const;

  std::array<Vote, kVotesMax> votes_;
  uint32_t taxa_ = 0;
};

// Looks up every k-mer of the read; k-mers that are in no genome have no vote. An index finds the
// taxon of a canonical k-mer: a KmerIndex, or a KmerHeapIndex.
template <typename Index>
Taxon classify(const Read& read, const Index& index, const Taxonomy& taxonomy) {
  TaxonVotes votes;
  KmerWindow window;
  for (const uint8_t base : read.bases()) {
    if (!window.push(base)) continue;
    const Taxon taxon = index.find(window.canonical());
    if (taxonomy.has(taxon)) votes.add(taxon);  // a damaged file has others, too
  }
  return votes.choose(taxonomy);
}

// What became of a sample: its reads, by number. It belongs to one thread.
template <typename Index>
class SampleAnswers {
 public:
  // REQUIRES: genomes and index stay
  SampleAnswers(const Genomes& genomes, const Index& index) : genomes_(genomes), index_(index) {}
  // From now on the pages of a read are asked for before its k-mers are looked up.
  // REQUIRES: the lists stay, and are for this index
  void ask_ahead(PageLists* lists) { lists_ = lists; }

  void classify_read(uint64_t number) {
    const Taxonomy& taxonomy = genomes_.taxonomy();
    const Read read = genomes_.read(number);
    if (lists_ != nullptr) lists_->ask_for(read);
    const Taxon answer = classify(read, index_, taxonomy);
    checksum_ += mix(mix(number) + answer);
    const bool is_right = read.truth == kNoTaxon
                              ? answer == kNoTaxon
                              : taxonomy.species_of(answer) == taxonomy.species_of(read.truth);
    right_ += is_right;
    above_ += !is_right && read.truth != kNoTaxon && taxonomy.is_above_or_same(answer, read.truth);
  }
  // Of all answers, in whatever order they came: those of several threads are added.
  uint64_t checksum() const { return checksum_; }
  // Reads that were found to be of the right species, or of none where that is right.
  uint64_t right() const { return right_; }
  // Beside these, reads of which what is above their species was told: true, if not much.
  uint64_t above() const { return above_; }

 private:
  const Genomes& genomes_;
  const Index& index_;
  PageLists* lists_ = nullptr;
  uint64_t checksum_ = 0, right_ = 0, above_ = 0;
};

}  // namespace outcore::bench
