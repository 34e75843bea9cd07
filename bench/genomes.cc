#include "bench/genomes.h"

#include <algorithm>
#include <utility>

#include "bench/check.h"

namespace outcore::bench {
namespace {

// Shares of the bases that differ, in 65,536ths.
constexpr uint32_t kSpeciesDifferences = 2621, kStrainDifferences = 328;
constexpr uint64_t kErrorOneIn = 100, kStrangerOneIn = 16, kRandomOneIn = 8;
constexpr uint64_t kStrangerBases = 128 << 10;  // of a made-up organism beside real ones

static_assert(GenomeFiles::kRunBasesMin >= kReadBasesMax);

// Numbers that no other place or level has.
uint64_t key_of(uint64_t seed, uint64_t level, uint64_t number) {
  return mix(mix(seed + level * 0xD1B54A32D192ED03) + number);
}

// The base, or in `share` of the places one of the three others. One hash serves four places.
uint8_t mutated(uint8_t base, uint64_t key, uint64_t position, uint32_t share) {
  const uint64_t chance = mix(key + position / 4) >> (position % 4 * 16) & 0xFFFF;
  if (chance >= share) return base;
  return static_cast<uint8_t>((base + 1 + chance % 3) % 4);
}

}  // namespace

Genomes::Genomes(uint64_t seed, uint32_t genera, uint64_t genome_bases)
    : seed_(mix(seed)), taxonomy_(genera), genome_bases_(genome_bases) {
  BENCH_CHECK(genome_bases >= kReadBasesMax);
}

Genomes::Genomes(uint64_t seed, std::shared_ptr<const GenomeFiles> files)
    : seed_(mix(seed)),
      files_(std::move(files)),
      taxonomy_(files_->taxonomy()),
      genome_bases_(kStrangerBases) {}

uint8_t Sequence::base(uint64_t position) const {
  if (!bases_.empty()) return bases_[position];
  const uint64_t bits = mix(genus_key_ + position / 32) >> (position % 32 * 2);
  const auto of_genus = static_cast<uint8_t>(bits & 3);
  const uint8_t of_species = mutated(of_genus, species_key_, position, kSpeciesDifferences);
  return mutated(of_species, strain_key_, position, kStrainDifferences);
}

Sequence Genomes::sequence(uint64_t strain) const {
  if (is_real() && strain < taxonomy_.strains())
    return Sequence(files_->bases_of(static_cast<uint32_t>(strain)));
  return {key_of(seed_, 1, strain / kStrainsAGenus), key_of(seed_, 2, strain / kStrainsASpecies),
          key_of(seed_, 3, strain)};
}

uint64_t Genomes::bases_of(uint64_t strain) const {
  if (is_real() && strain < taxonomy_.strains())
    return files_->bases_of(static_cast<uint32_t>(strain)).size();
  return genome_bases_;
}

uint64_t Genomes::all_bases() const {
  return is_real() ? files_->all_bases() : taxonomy_.strains() * genome_bases_;
}

double Genomes::tellable_share() const {
  if (!is_real()) return 1;  // next to all
  return 1 - (1 - 1.0 / kStrangerOneIn) * (1 - files_->census().species_share);
}

uint64_t Genomes::place_in(uint64_t strain, uint64_t bases, Random& random) const {
  if (is_real() && strain < taxonomy_.strains())
    return files_->place_in(static_cast<uint32_t>(strain), bases, random);
  return random.below(genome_bases_ - bases + 1);
}

Read Genomes::read(uint64_t number) const {
  Random random(key_of(seed_, 4, number));
  const uint64_t strains = taxonomy_.strains();
  const bool is_stranger = random.below(kStrangerOneIn) == 0;
  const uint64_t strain = random.below(strains) + (is_stranger ? strains : 0);
  Read read;
  read.truth = is_stranger ? kNoTaxon : taxonomy_.strain(static_cast<uint32_t>(strain));
  read.length =
      kReadBasesMin + static_cast<uint32_t>(random.below(kReadBasesMax - kReadBasesMin + 1));
  const Sequence genome = sequence(strain);
  const uint64_t first = place_in(strain, read.length, random);
  for (uint32_t i = 0; i < read.length; ++i) {
    uint8_t seen = genome.base(first + i);
    if (random.below(kErrorOneIn) == 0)
      seen = static_cast<uint8_t>((seen + 1 + random.below(3)) % 4);
    read.storage[i] = seen;
  }
  if (random.below(2) == 0) return read;
  std::reverse(read.storage.begin(), read.storage.begin() + read.length);
  for (uint32_t i = 0; i < read.length; ++i) read.storage[i] = complement(read.storage[i]);
  return read;
}

KmerLookup Genomes::lookup(uint64_t number) const {
  Random random(key_of(seed_, 5, number));
  if (random.below(kRandomOneIn) == 0) return {canonical(random.next() & kKmerMask), kNoTaxon};
  const uint64_t strain = random.below(taxonomy_.strains());
  const Sequence genome = sequence(strain);
  const uint64_t first = place_in(strain, kKmerBases, random);
  uint64_t kmer = 0;
  for (uint64_t i = 0; i < kKmerBases; ++i) kmer = kmer << 2 | genome.base(first + i);
  return {canonical(kmer), taxonomy_.strain(static_cast<uint32_t>(strain))};
}

}  // namespace outcore::bench
