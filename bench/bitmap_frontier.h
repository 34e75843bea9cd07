// BitmapFrontier: a frontier as two bitmaps, for a search whose state is in memory: a bit for each
// vertex, and the vertices in ascending order over the whole level.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/frontier.h"

namespace outcore::bench {

class BitmapFrontier : public Frontier {
 public:
  static uint64_t size_bytes(uint64_t vertices) { return 2 * words(vertices) * sizeof(uint64_t); }
  // REQUIRES: `memory` is aligned to words, of size_bytes(), all zeros, and outlives the frontier.
  BitmapFrontier(std::span<std::byte> memory, uint64_t vertices);

  void add(unsigned thread, uint64_t vertex) override;
  bool next_level() override;
  bool take(std::vector<uint64_t>& vertices) override;

 private:
  static uint64_t words(uint64_t vertices) { return (vertices + 63) / 64; }
  std::span<uint64_t> current_, next_;
  std::atomic<uint64_t> next_word_{0};
  std::atomic<bool> has_found_{false};
};

}  // namespace outcore::bench
