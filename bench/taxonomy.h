// Taxonomy: the tree of organisms: a root, genera, their species, and the strains of these, which
// have the genomes. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/check.h"

namespace outcore::bench {

using Taxon = uint32_t;
inline constexpr Taxon kNoTaxon = 0;    // of what is in no genome
inline constexpr Taxon kRootTaxon = 1;  // of what organisms of several genera have

// Of made-up organisms.
inline constexpr uint32_t kSpeciesAGenus = 4, kStrainsASpecies = 2;
inline constexpr uint32_t kStrainsAGenus = kSpeciesAGenus * kStrainsASpecies;

// Taxa are numbered level by level, so a parent is smaller than its children. That of a made-up
// organism is computed.
class Taxonomy {
 public:
  static constexpr uint32_t kGeneraMax = 1'000'000;

  // Of made-up organisms. REQUIRES: genera is 1 … kGeneraMax
  explicit Taxonomy(uint32_t genera)
      : genera_(genera), species_(genera * kSpeciesAGenus), strains_(genera * kStrainsAGenus) {
    BENCH_CHECK(genera != 0 && genera <= kGeneraMax);
  }
  // Of others: of each species the number of its genus, and of each strain that of its species.
  // REQUIRES: both ascend, from 0 on, and leave no number out; together they are 2^31 or fewer
  Taxonomy(std::span<const uint32_t> genus_of_species, std::span<const uint32_t> species_of_strain)
      : genera_(genus_of_species.back() + 1),
        species_(static_cast<uint32_t>(genus_of_species.size())),
        strains_(static_cast<uint32_t>(species_of_strain.size())) {
    BENCH_CHECK(species_of_strain.back() + 1 == species_);
    for (const uint32_t genus : genus_of_species) parents_.push_back(kFirstGenus + genus);
    for (const uint32_t species : species_of_strain) parents_.push_back(first_species() + species);
  }
  uint32_t genera() const { return genera_; }
  uint32_t strains() const { return strains_; }
  // True for the taxa of this tree, kNoTaxon not included.
  bool has(Taxon taxon) const { return taxon != kNoTaxon && taxon < first_strain() + strains(); }

  // REQUIRES: strain < strains()
  Taxon strain(uint32_t strain) const {
    BENCH_CHECK(strain < strains());
    return first_strain() + strain;
  }
  // kNoTaxon: it is the root. REQUIRES: has(taxon)
  Taxon parent(Taxon taxon) const {
    BENCH_CHECK(has(taxon));
    if (!parents_.empty() && taxon >= first_species()) return parents_[taxon - first_species()];
    if (taxon >= first_strain())
      return first_species() + (taxon - first_strain()) / kStrainsASpecies;
    if (taxon >= first_species()) return kFirstGenus + (taxon - first_species()) / kSpeciesAGenus;
    return taxon == kRootTaxon ? kNoTaxon : kRootTaxon;
  }
  // Of a strain or a species; kNoTaxon for what is above, and for kNoTaxon.
  Taxon species_of(Taxon taxon) const {
    if (taxon >= first_strain()) return parent(taxon);
    return taxon >= first_species() ? taxon : kNoTaxon;
  }
  // The lowest taxon that both belong to. kNoTaxon and another give the other.
  Taxon common_ancestor(Taxon a, Taxon b) const {
    if (a == kNoTaxon || b == kNoTaxon) return a + b;
    while (a != b) (a > b ? a : b) = parent(a > b ? a : b);
    return a;
  }
  // True for a taxon and itself, too. REQUIRES: has(taxon)
  bool is_above_or_same(Taxon above, Taxon taxon) const {
    return above != kNoTaxon && common_ancestor(above, taxon) == above;
  }

 private:
  static constexpr Taxon kFirstGenus = kRootTaxon + 1;
  Taxon first_species() const { return kFirstGenus + genera_; }
  Taxon first_strain() const { return first_species() + species_; }

  uint32_t genera_, species_, strains_;
  std::vector<Taxon> parents_;  // of species, then of strains; none: they are computed
};

}  // namespace outcore::bench
