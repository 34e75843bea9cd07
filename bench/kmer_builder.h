// KmerBuilder: lays out the database of some genomes in memory, by several threads, each of which
// fills a part of its own: equal genomes give equal bytes, whatever the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/genomes.h"
#include "bench/kmer_index.h"
#include "outcore/result.h"

namespace outcore::bench {

// One thread calls it.
class KmerBuilder {
 public:
  // The smallest hash table for which there are sixteen genera.
  static constexpr uint64_t kFileBytesMin = uint64_t{1} << 20;

  // Genomes whose k-mers fill seven tenths of a hash table of so many bytes.
  // REQUIRES: file_bytes >= kFileBytesMin
  static Genomes genomes_for(uint64_t file_bytes, uint64_t seed);
  // The other way round: a hash table for so many k-mers.
  static uint64_t file_bytes_for(uint64_t kmers);

  // REQUIRES: the genomes stay; threads > 0
  KmerBuilder(const Genomes& genomes, unsigned threads);

  // Fills the file behind its header. Errors: ENOSPC if a bucket had too many k-mers.
  // REQUIRES: it holds zeros, and is as long as genomes_for() was told or file_bytes_for() tells
  Result<KmerHeader> lay_out_hash(std::span<std::byte> file) const;
  // The header of an index of two levels with the k-mers of that table, which tells its size.
  static KmerHeader two_level_header(const KmerHeader& hash);
  // REQUIRES: `table` was laid out by lay_out_hash(); `file` holds zeros, of its header's size
  void lay_out_two_level(std::span<const std::byte> table, const KmerHeader& header,
                         std::span<std::byte> file) const;
  // One number for all that follows the header.
  uint64_t hash_content(std::span<const std::byte> file) const;

 private:
  struct Part {
    uint64_t first, last;
  };
  // The thread's part of `count` things.
  Part part_of(uint64_t count, unsigned thread) const;

  const Genomes& genomes_;
  unsigned threads_;
};

}  // namespace outcore::bench
