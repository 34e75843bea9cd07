// PageLists: the pages that the k-mers of a read lie in, which a program with irregular look-ups
// can tell before it touches them (UMap paper, section 3.1.2).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bench/genomes.h"
#include "bench/kmer_index.h"

namespace outcore::bench {

// It belongs to one thread.
class PageLists {
 public:
  // Is told the numbers of pages of the file, in the order in which they will be touched.
  using Ask = std::function<void(std::span<const uint64_t>)>;

  // `is_top_pinned`: the words of an index of two levels are in memory, and need not be asked for.
  // REQUIRES: the index stays; page_bytes > 0
  PageLists(const KmerIndex& index, uint64_t page_bytes, bool is_top_pinned, Ask ask);

  // Of a hash table one list, of the buckets. Of two levels one of the words; and when they are
  // there, for which this waits as it reads them, one of the lists of entries that they tell.
  void ask_for(const Read& read);

 private:
  void add(ByteRange bytes);
  void ask();

  const KmerIndex& index_;
  uint64_t page_bytes_;
  bool is_top_pinned_;
  Ask ask_;
  std::vector<uint64_t> kmers_, pages_;  // of the read; of the list that is being made
};

}  // namespace outcore::bench
