// KmerIndex: the taxon of each k-mer, looked up in a database file that is mapped, by one of the
// two layouts of the DI-MMAP paper (section 4.1): a hash table, and LMAT's index of two levels.
//
// Layout of the file, little endian. An entry is a word: the canonical k-mer in its upper 40 bits,
// below it the taxon; 0 is no entry.
//   byte 0      header, 4096 bytes: the fields of KmerHeader, the rest zero
//   hash:
//   4096        buckets of 512 entries, each filled without regard to the others: the hash of a
//               k-mer tells its bucket, and in it the entry with which to begin; further ones
//               follow, the first behind the last
//   two-level:
//   4096        2^prefix_bits + 1 words: the k-mers that begin with prefix p are the entries
//               word[p] … word[p + 1] - 1; then zeros up to a multiple of 4096
//   entries_at  entries, ascending; then zeros up to a multiple of 4096
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/kmer.h"
#include "bench/random.h"
#include "bench/taxonomy.h"

namespace outcore::bench {

inline constexpr unsigned kTaxonBits = 64 - kKmerBits;

constexpr uint64_t entry_of(uint64_t kmer, Taxon taxon) { return kmer << kTaxonBits | taxon; }
constexpr uint64_t kmer_of(uint64_t entry) { return entry >> kTaxonBits; }
constexpr Taxon taxon_of(uint64_t entry) {
  return static_cast<Taxon>(entry & ((uint64_t{1} << kTaxonBits) - 1));
}

struct KmerHeader {
  static constexpr uint64_t kMagic = 0x3152454D4B434F;  // "OCKMER1"
  static constexpr uint64_t kBytes = 4096;
  static constexpr uint64_t kBucketEntries = 512;

  uint64_t magic = kMagic;
  uint64_t size_bytes = 0;   // of the file
  uint64_t prefix_bits = 0;  // 0: a hash table
  uint64_t entries_at = kBytes;
  uint64_t kmers = 0;
  uint64_t genera = 0, bases = 0;            // of all genomes
  uint64_t content_hash = 0;                 // of all that follows the header
  uint64_t reads = 0, answers = 0;           // the checksum of the answers to so many reads
  uint64_t lookups = 0, lookup_answers = 0;  // and to so many k-mers by themselves

  bool is_two_level() const { return prefix_bits != 0; }
};

// A place in a hash table.
struct KmerSlot {
  uint64_t bucket, entry;
};
inline KmerSlot slot_of(uint64_t kmer, uint64_t buckets) {
  const uint64_t hash = mix(kmer);
  const auto bucket = static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * buckets) >> 64);
  return {bucket, hash % KmerHeader::kBucketEntries};
}

// Bytes of a database file.
struct ByteRange {
  uint64_t first = 0, end = 0;
};

// Any thread. The bytes must stay.
class KmerIndex {
 public:
  // REQUIRES: the bytes are all of a file with this header
  KmerIndex(const KmerHeader& header, std::span<const std::byte> bytes);
  // kNoTaxon: it is not there. REQUIRES: the k-mer is canonical
  Taxon find(uint64_t kmer) const;
  bool is_two_level() const { return lists_ != nullptr; }
  // Where find() begins: in the k-mer's bucket, or at the words of its list.
  ByteRange first_step(uint64_t kmer) const;
  // Where it goes on: the k-mer's list, of which this reads the words; empty if there is none.
  // REQUIRES: is_two_level()
  ByteRange second_step(uint64_t kmer) const;

 private:
  Taxon find_in_bucket(uint64_t kmer) const;
  Taxon find_in_list(uint64_t kmer) const;
  std::span<const uint64_t> list_of(uint64_t kmer) const;
  ByteRange bytes_of(const uint64_t* words, uint64_t count) const;

  const std::byte* file_;
  const uint64_t* entries_;
  const uint64_t* lists_;  // nullptr: a hash table
  uint64_t buckets_, kmers_;
  unsigned prefix_shift_;
};

const std::vector<std::string>& index_names();  // hash, two-level

}  // namespace outcore::bench
