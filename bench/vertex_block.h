// VertexBlock: a page of vertices in memory that may be mapped: a word that counts, and then as
// many vertices. Of the queues of searches. Whoever fills or reads a block has it alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bench/check.h"

namespace outcore::bench {

class VertexBlock {
 public:
  static constexpr uint64_t kBytes = 4096, kWords = kBytes / sizeof(uint64_t);
  static constexpr uint64_t kVertices = kWords - 1;  // at most
  // How many blocks so many vertices fill.
  static constexpr uint64_t count_for(uint64_t vertices) {
    return (vertices + kVertices - 1) / kVertices;
  }

  // Block `number` of an array of blocks that begins at `words`, which outlives it.
  VertexBlock(uint64_t* words, uint64_t number) : words_(words + number * kWords) {}

  void clear() { words_[0] = 0; }
  bool is_full() const { return words_[0] == kVertices; }
  // REQUIRES: it is not full.
  void add(uint64_t vertex) {
    BENCH_CHECK(words_[0] < kVertices);
    words_[++words_[0]] = vertex;
  }
  // All vertices, ascending: for the sake of the pages that visiting them touches. REQUIRES: there
  // are some.
  void copy_sorted(std::vector<uint64_t>& into) const {
    BENCH_CHECK(words_[0] != 0 && words_[0] <= kVertices);
    into.assign(words_ + 1, words_ + 1 + words_[0]);
    std::sort(into.begin(), into.end());
  }

 private:
  uint64_t* words_;
};

}  // namespace outcore::bench
