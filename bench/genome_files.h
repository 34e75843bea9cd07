// GenomeFiles: real genomes, from FASTA files in folders that tell their taxonomy:
// FOLDER/GENUS/SPECIES/STRAIN.fna (.fa, .fasta). Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/kmer_census.h"
#include "bench/kmer_index.h"
#include "bench/random.h"
#include "bench/taxonomy.h"
#include "outcore/result.h"

namespace outcore::bench {

class GenomeFiles {
 public:
  // A strain must have so many bases in a row, of which reads can be.
  static constexpr uint64_t kRunBasesMin = 150;
  static constexpr uint64_t kTaxaMax = (uint64_t{1} << kTaxonBits) - 1;

  // Reads all of them into memory, a byte a base. What has another name is passed over.
  // Errors: ENOENT (no such folder, no such file in it), EINVAL (a file is no FASTA, or has too few
  // bases in a row; there are more taxa), and what the system says.
  static Result<std::shared_ptr<const GenomeFiles>> read(const std::string& folder,
                                                         uint64_t taxa_max = kTaxaMax);

  const Taxonomy& taxonomy() const { return taxonomy_; }
  // Of a folder or file, without its ending; of the root "root".
  const std::string& name_of(Taxon taxon) const { return names_[taxon]; }
  // 0 … 3 and kNoBase; likewise of all others: REQUIRES: the strain is one of the taxonomy
  std::span<const uint8_t> bases_of(uint32_t strain) const { return strains_[strain].bases; }
  uint64_t all_bases() const { return all_bases_; }
  const KmerCensus& census() const { return census_; }
  // One number for taxonomy and bases.
  uint64_t hash() const { return hash_; }
  // Where so many bases follow one another, uniformly. REQUIRES: bases is 1 … kRunBasesMin
  uint64_t place_in(uint32_t strain, uint64_t bases, Random& random) const;

 private:
  // Bases in a row, and how many are in those before.
  struct Run {
    uint64_t first, bases, before;
  };
  struct Strain {
    std::vector<uint8_t> bases;
    std::vector<Run> runs;  // of kRunBasesMin or more
  };
  struct Names;  // what the folders have
  explicit GenomeFiles(const Names& names);
  Status read_strain(const std::string& path);
  void finish();

  Taxonomy taxonomy_;
  std::vector<std::string> names_;  // by taxon
  std::vector<Strain> strains_;
  uint64_t all_bases_ = 0, hash_ = 0;
  KmerCensus census_;
};

}  // namespace outcore::bench
