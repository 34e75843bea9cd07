// Genomes: genomes whose relations are known, made-up or real ones, and what a sequencing machine
// gives of them. Any thread.
//
// A made-up genus has a random sequence; a species differs from it in 4 % of the bases, a strain
// from its species in 0.5 %. So strains of a species share most 20-mers, and species of a genus
// some. A base is computed from its place, and no such genome is kept.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "bench/genome_files.h"
#include "bench/kmer.h"
#include "bench/random.h"
#include "bench/taxonomy.h"

namespace outcore::bench {

inline constexpr uint32_t kReadBasesMin = 100, kReadBasesMax = 150;

struct Read {
  std::span<const uint8_t> bases() const { return {storage.data(), length}; }
  std::array<uint8_t, kReadBasesMax> storage{};
  uint32_t length = 0;
  Taxon truth = kNoTaxon;  // the strain; kNoTaxon: of an organism that the taxonomy does not have
};

// A k-mer that is looked up by itself.
struct KmerLookup {
  uint64_t kmer = 0;       // canonical
  Taxon truth = kNoTaxon;  // a strain that has it; kNoTaxon: it is random, most likely in none
};

// The genome of one strain. Made by Genomes, which must stay.
class Sequence {
 public:
  Sequence(uint64_t genus_key, uint64_t species_key, uint64_t strain_key)
      : genus_key_(genus_key), species_key_(species_key), strain_key_(strain_key) {}
  explicit Sequence(std::span<const uint8_t> bases) : bases_(bases) {}
  uint8_t base(uint64_t position) const;  // kNoBase only in real genomes

 private:
  uint64_t genus_key_ = 0, species_key_ = 0, strain_key_ = 0;
  std::span<const uint8_t> bases_;  // empty: it is made up
};

class Genomes {
 public:
  // Different k-mers of a genus for each base of one of its made-up genomes, by the shares above.
  static constexpr double kKmersABase = 3.9;

  // Made-up ones, of so many bases each. REQUIRES: genome_bases >= kReadBasesMax
  Genomes(uint64_t seed, uint32_t genera, uint64_t genome_bases);
  // Real ones: the seed tells the reads. REQUIRES: there are some
  Genomes(uint64_t seed, std::shared_ptr<const GenomeFiles> files);

  const Taxonomy& taxonomy() const { return taxonomy_; }
  bool is_real() const { return files_ != nullptr; }
  const GenomeFiles& files() const { return *files_; }  // REQUIRES: is_real()
  // Strains from taxonomy().strains() on are of genera that the taxonomy does not have.
  Sequence sequence(uint64_t strain) const;
  uint64_t bases_of(uint64_t strain) const;
  uint64_t all_bases() const;  // of the strains of the taxonomy
  // Of all reads: those whose species the genomes tell, however good a database is.
  double tellable_share() const;
  // Calls see(k-mer), canonical, for each of a strain, in order.
  template <typename See>
  void each_kmer(uint32_t strain, See&& see) const;

  // The read of this number, always the same: of either strand, with errors in 1 % of the bases,
  // and one in sixteen of an organism that is unknown, and made up.
  Read read(uint64_t number) const;
  // Likewise: one in eight is random.
  KmerLookup lookup(uint64_t number) const;

 private:
  // Where in a strain so many bases follow one another.
  uint64_t place_in(uint64_t strain, uint64_t bases, Random& random) const;

  uint64_t seed_;
  std::shared_ptr<const GenomeFiles> files_;  // nullptr: made-up ones
  Taxonomy taxonomy_;
  uint64_t genome_bases_;  // of each made-up strain
};

template <typename See>
void Genomes::each_kmer(uint32_t strain, See&& see) const {
  if (is_real()) return bench::each_kmer(files_->bases_of(strain), see);
  const Sequence genome = sequence(strain);
  KmerWindow window;
  for (uint64_t i = 0; i < genome_bases_; ++i)
    if (window.push(genome.base(i))) see(window.canonical());
}

}  // namespace outcore::bench
