// LookupAnswers: what became of k-mers that were looked up by themselves: the raw look-ups of the
// DI-MMAP paper (section 5.3). It belongs to one thread.
#pragma once

#include <cstdint>

#include "bench/genomes.h"
#include "bench/kmer_index.h"

namespace outcore::bench {

class LookupAnswers {
 public:
  // REQUIRES: genomes and index stay
  LookupAnswers(const Genomes& genomes, const KmerIndex& index)
      : genomes_(genomes), index_(index) {}

  void look_up(uint64_t number);  // the k-mer of this number
  // Of all answers, in whatever order they came: those of several threads are added.
  uint64_t checksum() const { return checksum_; }
  // K-mers that are in the database.
  uint64_t found() const { return found_; }
  // K-mers of a strain whose taxon is neither this strain nor above it: none in a right database.
  uint64_t wrong() const { return wrong_; }

 private:
  const Genomes& genomes_;
  const KmerIndex& index_;
  uint64_t checksum_ = 0, found_ = 0, wrong_ = 0;
};

}  // namespace outcore::bench
