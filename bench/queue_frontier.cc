#include "bench/queue_frontier.h"

#include <algorithm>

#include "bench/check.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kBlockWords = QueueFrontier::kBlockBytes / sizeof(uint64_t);

}  // namespace

QueueFrontier::QueueFrontier(std::span<std::byte> memory, uint64_t vertices, unsigned threads)
    : blocks_max_(blocks_max(vertices, threads)), writers_(threads) {
  BENCH_CHECK(memory.size() >= size_bytes(vertices, threads));
  auto* const words = reinterpret_cast<uint64_t*>(memory.data());
  queues_[0].blocks = words;
  queues_[1].blocks = words + blocks_max_ * kBlockWords;
}

uint64_t* QueueFrontier::fresh_block() {
  Queue& next = queues_[1 - current_];
  const uint64_t index = next.used.fetch_add(1);
  BENCH_CHECK(index < blocks_max_);
  uint64_t* const block = next.blocks + index * kBlockWords;
  block[0] = 0;
  return block;
}

void QueueFrontier::add(unsigned thread, uint64_t vertex) {
  BENCH_CHECK(thread < writers_.size());
  uint64_t*& block = writers_[thread].block;
  if (block == nullptr || block[0] == kBlockVertices) block = fresh_block();
  block[++block[0]] = vertex;
}

bool QueueFrontier::next_level() {
  queues_[current_].used = 0;
  current_ = 1 - current_;
  taken_ = 0;
  for (Writer& writer : writers_) writer.block = nullptr;
  return queues_[current_].used != 0;
}

bool QueueFrontier::take(std::vector<uint64_t>& vertices) {
  vertices.clear();
  const Queue& current = queues_[current_];
  const uint64_t index = taken_.fetch_add(1);
  if (index >= current.used) return false;
  const uint64_t* const block = current.blocks + index * kBlockWords;
  BENCH_CHECK(block[0] != 0 && block[0] <= kBlockVertices);
  vertices.assign(block + 1, block + 1 + block[0]);
  std::sort(vertices.begin(), vertices.end());
  return true;
}

}  // namespace outcore::bench
