#include "bench/kmer_census.h"

#include <algorithm>
#include <vector>

#include "bench/check.h"
#include "bench/kmer.h"
#include "bench/kmer_index.h"
#include "bench/random.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kCensusMax = uint64_t{1} << 20;  // which tells the number to some thousandths

// One k-mer of 2^shift, with each strain that has it, as often as it does; in order.
std::vector<uint64_t> sample(const Taxonomy& taxonomy, const KmerCensus::Bases& bases_of,
                             unsigned shift) {
  const uint64_t mask = (uint64_t{1} << shift) - 1;
  std::vector<uint64_t> found;
  for (uint32_t strain = 0; strain < taxonomy.strains(); ++strain)
    each_kmer(bases_of(strain), [&](uint64_t kmer) {
      if ((mix(kmer) & mask) == 0) found.push_back(entry_of(kmer, taxonomy.strain(strain)));
    });
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

KmerCensus KmerCensus::of(const Taxonomy& taxonomy, const Bases& bases_of) {
  uint64_t all = 0;
  for (uint32_t strain = 0; strain < taxonomy.strains(); ++strain)
    each_kmer(bases_of(strain), [&](uint64_t) { ++all; });
  BENCH_CHECK(all != 0);
  unsigned shift = 0;
  while (all >> shift > kCensusMax) ++shift;
  std::vector<uint64_t> found = sample(taxonomy, bases_of, shift);
  // Genomes that repeat themselves may have few different ones, of which none is in a sample.
  while (found.empty()) found = sample(taxonomy, bases_of, --shift);
  struct Count {
    uint64_t all = 0, of_one_species = 0;
  };
  std::vector<Count> counts(taxonomy.strains());
  const Taxon first_strain = taxonomy.strain(0);
  KmerCensus census;
  for (auto at = found.begin(); at != found.end(); ++census.kmers) {
    const auto end = std::find_if(at, found.end(),
                                  [&](uint64_t entry) { return kmer_of(entry) != kmer_of(*at); });
    const Taxon first = taxon_of(*at), last = taxon_of(*(end - 1));
    const bool is_of_one = taxonomy.species_of(first) == taxonomy.species_of(last);
    for (; at != end; ++at) {
      Count& count = counts[taxon_of(*at) - first_strain];
      ++count.all;
      count.of_one_species += is_of_one;
    }
  }
  census.kmers <<= shift;
  double shares = 0, strains = 0;
  for (const Count& count : counts) {
    if (count.all == 0) continue;  // a short genome beside many long ones
    shares += static_cast<double>(count.of_one_species) / static_cast<double>(count.all);
    ++strains;
  }
  BENCH_CHECK(strains != 0);
  census.species_share = shares / strains;
  return census;
}

}  // namespace outcore::bench
