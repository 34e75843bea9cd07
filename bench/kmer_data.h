// KmerData: the file of kmers: a database of k-mers, made once for a size or real genomes, an index
// and a seed, with the right answers to a sample of reads, or of k-mers, in its header.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "bench/data.h"
#include "bench/genomes.h"
#include "bench/kmer_index.h"
#include "bench/options.h"

namespace outcore::bench {

// What is asked of a database: the first `count` reads, or k-mers by themselves.
struct KmerSample {
  uint64_t count = 0;
  bool is_of_lookups = false;
};

class KmerData {
 public:
  explicit KmerData(const Options& options);
  Data& file() { return file_; }
  const Data& file() const { return file_; }
  const Genomes& genomes() const { return genomes_; }
  // Of the file. REQUIRES: make() succeeded
  const KmerHeader& header() const;

  // Claims the file, and makes it unless it is there unchanged; then the header has the checksum of
  // the answers to the sample, found in plain memory. Holds the whole database in
  // memory for that, and to make one of two levels twice. Errors: EILSEQ if the file has been
  // changed by somebody, and what the system said.
  Status make(const KmerSample& sample);
  // What must come out for the sample. REQUIRES: make() succeeded for it
  uint64_t right_answers(const KmerSample& sample) const;
  // As export_sample(), by the database in plain memory. REQUIRES: make() succeeded
  Status export_to(const std::string& folder, uint64_t reads);

 private:
  bool has_database();  // if so, header_ is its header
  bool has_answers(const KmerSample& sample) const;
  Status build(const KmerSample& sample);
  Status write(std::span<std::byte> bytes, const KmerSample& sample);
  Status renew_answers(const KmerSample& sample);
  void add_answers(std::span<const std::byte> bytes, const KmerSample& sample);

  uint64_t size_bytes_;
  bool is_two_level_;
  Genomes genomes_;
  Data file_;
  std::string tag_;
  KmerHeader header_;
  bool is_made_ = false;
};

}  // namespace outcore::bench
