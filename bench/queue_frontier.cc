#include "bench/queue_frontier.h"

#include "bench/check.h"

namespace outcore::bench {

QueueFrontier::QueueFrontier(std::span<std::byte> memory, uint64_t vertices, unsigned threads)
    : blocks_max_(blocks_max(vertices, threads)), writers_(threads) {
  BENCH_CHECK(memory.size() >= size_bytes(vertices, threads));
  auto* const words = reinterpret_cast<uint64_t*>(memory.data());
  queues_[0].blocks = words;
  queues_[1].blocks = words + blocks_max_ * VertexBlock::kWords;
}

VertexBlock QueueFrontier::fresh_block() {
  Queue& next = queues_[1 - current_];
  const uint64_t index = next.used.fetch_add(1);
  BENCH_CHECK(index < blocks_max_);
  VertexBlock block(next.blocks, index);
  block.clear();
  return block;
}

void QueueFrontier::add(unsigned thread, uint64_t vertex) {
  BENCH_CHECK(thread < writers_.size());
  std::optional<VertexBlock>& block = writers_[thread].block;
  if (!block || block->is_full()) block = fresh_block();
  block->add(vertex);
}

bool QueueFrontier::next_level() {
  queues_[current_].used = 0;
  current_ = 1 - current_;
  taken_ = 0;
  for (Writer& writer : writers_) writer.block.reset();
  return queues_[current_].used != 0;
}

bool QueueFrontier::take(std::vector<uint64_t>& vertices) {
  vertices.clear();
  const Queue& current = queues_[current_];
  const uint64_t index = taken_.fetch_add(1);
  if (index >= current.used) return false;
  VertexBlock(current.blocks, index).copy_sorted(vertices);
  return true;
}

}  // namespace outcore::bench
