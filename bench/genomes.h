// Genomes: made-up genomes whose relations are known, and the reads that a sequencing machine gives
// of them. Any thread.
//
// A genus has a random sequence; a species differs from it in 4 % of the bases, a strain from its
// species in 0.5 %. So strains of a species share most 20-mers, and species of a genus some. A base
// is computed from its place, and no genome is kept.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "bench/taxonomy.h"

namespace outcore::bench {

inline constexpr uint32_t kReadBasesMin = 100, kReadBasesMax = 150;

struct Read {
  std::span<const uint8_t> bases() const { return {storage.data(), length}; }
  std::array<uint8_t, kReadBasesMax> storage{};
  uint32_t length = 0;
  Taxon truth = kNoTaxon;  // the strain; kNoTaxon: of an organism that the taxonomy does not have
};

// The genome of one strain. Made by Genomes.
class Sequence {
 public:
  Sequence(uint64_t genus_key, uint64_t species_key, uint64_t strain_key)
      : genus_key_(genus_key), species_key_(species_key), strain_key_(strain_key) {}
  uint8_t base(uint64_t position) const;

 private:
  uint64_t genus_key_, species_key_, strain_key_;
};

class Genomes {
 public:
  // Different k-mers of a genus for each base of one of its genomes, by the shares above.
  static constexpr double kKmersABase = 3.9;

  // REQUIRES: genome_bases >= kReadBasesMax
  Genomes(uint64_t seed, uint32_t genera, uint64_t genome_bases);

  const Taxonomy& taxonomy() const { return taxonomy_; }
  uint64_t genome_bases() const { return genome_bases_; }  // of each strain
  // Strains from taxonomy().strains() on are of genera that the taxonomy does not have.
  Sequence sequence(uint64_t strain) const;
  // The read of this number, always the same: of either strand, with errors in 1 % of the bases,
  // and one in sixteen of an organism that is unknown.
  Read read(uint64_t number) const;

 private:
  uint64_t seed_;
  Taxonomy taxonomy_;
  uint64_t genome_bases_;
};

}  // namespace outcore::bench
