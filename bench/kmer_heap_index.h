// KmerHeapIndex: LMAT's index of two levels as objects of a heap, which is how LMAT keeps it: an
// array of lists, one for each prefix of a k-mer, and the entries of each, ascending, in memory
// that the list's allocator has of the heap (DI-MMAP paper, section 4.1). Any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/check.h"
#include "bench/kmer_index.h"
#include "bench/threads.h"

namespace outcore::bench {

// A list is a vector of uint64_t, each an entry as in a file (kmer_index.h).
template <typename List>
class KmerHeapIndex {
 public:
  // REQUIRES: there is a list for each prefix of some bits, 1 or more; the lists stay
  explicit KmerHeapIndex(std::span<const List> lists)
      : lists_(lists),
        prefix_shift_(kKmerBits - static_cast<unsigned>(std::countr_zero(lists.size()))) {
    BENCH_CHECK(std::has_single_bit(lists.size()) && lists.size() > 1);
  }

  // How many lists the k-mers of a file have. REQUIRES: its index is of two levels
  static uint64_t lists_of(const KmerHeader& file) { return uint64_t{1} << file.prefix_bits; }
  // Gives each list its entries, one list after the other. Throws what the lists' allocator throws
  // if the heap is full. REQUIRES: the lists are empty, and as many as lists_of() says; `bytes` is
  // all of a file with this header
  static void load(std::span<List> lists, const KmerHeader& header,
                   std::span<const std::byte> bytes);

  // kNoTaxon: it is not there. REQUIRES: the k-mer is canonical
  Taxon find(uint64_t kmer) const {
    const List& list = lists_[kmer >> prefix_shift_];
    const auto found = std::lower_bound(list.begin(), list.end(), entry_of(kmer, kNoTaxon));
    return found == list.end() || kmer_of(*found) != kmer ? kNoTaxon : taxon_of(*found);
  }

  // What there is, looked through by several threads.
  struct Found {
    uint64_t entries = 0;
    uint64_t misplaced = 0;  // in a list of another prefix, or behind one that is not less
  };
  Found look_through() const;

 private:
  std::span<const List> lists_;
  unsigned prefix_shift_;
};

template <typename List>
void KmerHeapIndex<List>::load(std::span<List> lists, const KmerHeader& header,
                               std::span<const std::byte> bytes) {
  BENCH_CHECK(header.is_two_level() && lists.size() == lists_of(header));
  const KmerIndex from(header, bytes);
  for (uint64_t prefix = 0; prefix < lists.size(); ++prefix) {
    const ByteRange range = from.second_step(prefix << (kKmerBits - header.prefix_bits));
    const auto* const first = reinterpret_cast<const uint64_t*>(bytes.data() + range.first);
    lists[prefix].assign(first, first + (range.end - range.first) / sizeof(uint64_t));
  }
}

template <typename List>
typename KmerHeapIndex<List>::Found KmerHeapIndex<List>::look_through() const {
  std::atomic<uint64_t> entries{0}, misplaced{0};
  const unsigned threads = making_threads();
  on_threads(threads, [&](unsigned thread) {
    Found found;
    for (uint64_t prefix = thread; prefix < lists_.size(); prefix += threads) {
      uint64_t least = prefix << prefix_shift_;  // of the k-mers that may come next
      for (const uint64_t entry : lists_[prefix]) {
        const uint64_t kmer = kmer_of(entry);
        found.misplaced += kmer < least || kmer >> prefix_shift_ != prefix;
        least = kmer + 1;
      }
      found.entries += lists_[prefix].size();
    }
    entries += found.entries;
    misplaced += found.misplaced;
  });
  return {entries, misplaced};
}

}  // namespace outcore::bench
