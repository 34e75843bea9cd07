// KmerCensus: how many k-mers genomes have, and how much they tell, by a sample of them that does
// not depend on any database. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "bench/taxonomy.h"

namespace outcore::bench {

struct KmerCensus {
  uint64_t kmers = 0;  // different ones, of all strains; about, unless they are few
  // Of the k-mers of a strain, on average: those that are in no other species.
  double species_share = 0;

  using Bases = std::function<std::span<const uint8_t>(uint32_t strain)>;
  // REQUIRES: each strain has a k-mer
  static KmerCensus of(const Taxonomy& taxonomy, const Bases& bases_of);
};

}  // namespace outcore::bench
