#include "bench/bitmap_frontier.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "bench/check.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kPortionWords = 16;  // 1024 vertices

}  // namespace

BitmapFrontier::BitmapFrontier(std::span<std::byte> memory, uint64_t vertices) {
  BENCH_CHECK(memory.size() >= size_bytes(vertices));
  auto* const bits = reinterpret_cast<uint64_t*>(memory.data());
  current_ = {bits, words(vertices)};
  next_ = {bits + words(vertices), words(vertices)};
}

void BitmapFrontier::add(unsigned, uint64_t vertex) {
  BENCH_CHECK(vertex / 64 < next_.size());
  std::atomic_ref(next_[vertex / 64])
      .fetch_or(uint64_t{1} << (vertex % 64), std::memory_order_relaxed);
  if (!has_found_.load(std::memory_order_relaxed))
    has_found_.store(true, std::memory_order_relaxed);
}

bool BitmapFrontier::next_level() {
  std::swap(current_, next_);
  std::fill(next_.begin(), next_.end(), 0);
  next_word_ = 0;
  return has_found_.exchange(false);
}

bool BitmapFrontier::take(std::vector<uint64_t>& vertices) {
  vertices.clear();
  const uint64_t first = next_word_.fetch_add(kPortionWords);
  if (first >= current_.size()) return false;
  const uint64_t last = std::min<uint64_t>(first + kPortionWords, current_.size());
  for (uint64_t word = first; word < last; ++word)
    for (uint64_t bits = current_[word]; bits != 0; bits &= bits - 1)
      vertices.push_back(word * 64 + static_cast<uint64_t>(std::countr_zero(bits)));
  return true;
}

}  // namespace outcore::bench
