// Taxonomy: the tree of made-up organisms: a root, genera, their species, and the strains of these,
// which have the genomes. Any thread.
#pragma once

#include <cstdint>

#include "bench/check.h"

namespace outcore::bench {

using Taxon = uint32_t;
inline constexpr Taxon kNoTaxon = 0;    // of what is in no genome
inline constexpr Taxon kRootTaxon = 1;  // of what organisms of several genera have

inline constexpr uint32_t kSpeciesAGenus = 4, kStrainsASpecies = 2;
inline constexpr uint32_t kStrainsAGenus = kSpeciesAGenus * kStrainsASpecies;

// Taxa are numbered level by level, so a parent is computed, and is smaller than its children.
class Taxonomy {
 public:
  static constexpr uint32_t kGeneraMax = 1'000'000;

  // REQUIRES: genera is 1 … kGeneraMax
  explicit Taxonomy(uint32_t genera) : genera_(genera) {
    BENCH_CHECK(genera != 0 && genera <= kGeneraMax);
  }
  uint32_t genera() const { return genera_; }
  uint32_t strains() const { return genera_ * kStrainsAGenus; }
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

 private:
  static constexpr Taxon kFirstGenus = kRootTaxon + 1;
  Taxon first_species() const { return kFirstGenus + genera_; }
  Taxon first_strain() const { return first_species() + genera_ * kSpeciesAGenus; }

  uint32_t genera_;
};

}  // namespace outcore::bench
