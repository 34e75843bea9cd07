#include "bench/visitor_queues.h"

#include <algorithm>

#include "bench/check.h"

namespace outcore::bench {

VisitorQueues::VisitorQueues(std::span<std::byte> memory, uint64_t vertices, unsigned threads)
    : words_(reinterpret_cast<uint64_t*>(memory.data())), queues_(threads) {
  BENCH_CHECK(memory.size() >= size_bytes(vertices, threads));
  const uint64_t blocks = blocks_max(vertices, threads);
  BENCH_CHECK(blocks < kNone);
  // The lowest are used first, and those that were used last again: pages that are in memory.
  free_.reserve(blocks);
  for (uint64_t block = blocks; block-- > 0;) free_.push_back(static_cast<Block>(block));
}

void VisitorQueues::add(unsigned thread, uint64_t vertex, uint32_t level) {
  BENCH_CHECK(thread < queues_.size());
  Queue& queue = queues_[thread];
  const bool is_near = level <= queue.level;
  if (!is_near) queue.next_level = std::min(queue.next_level, level);
  Part& part = is_near ? queue.near : queue.far;
  if (part.open == kNone) {
    {
      const std::lock_guard lock(mutex_);
      BENCH_CHECK(!free_.empty());
      part.open = free_.back();
      free_.pop_back();
    }
    at(part.open).clear();
  }
  VertexBlock open = at(part.open);
  open.add(vertex);
  if (!open.is_full()) return;
  const std::lock_guard lock(mutex_);
  part.full.push_back(part.open);
  part.open = kNone;
  if (waiting_ != 0) news_.notify_one();
}

// Full blocks come first: they could be taken by others, and are larger portions.
VisitorQueues::Block VisitorQueues::take_own(Queue& queue) {
  for (const bool is_next : {false, true}) {
    if (is_next) {
      std::swap(queue.near, queue.far);
      if (queue.next_level != kNoLevel) queue.level = queue.next_level;
      queue.next_level = kNoLevel;
    }
    Block block = kNone;
    if (!queue.near.full.empty()) {
      block = queue.near.full.back();
      queue.near.full.pop_back();
    } else {
      std::swap(block, queue.near.open);
    }
    if (block != kNone) return block;
  }
  return kNone;
}

VisitorQueues::Block VisitorQueues::take_from_others(unsigned thread) {
  for (size_t i = 1; i < queues_.size(); ++i) {
    Queue& other = queues_[(thread + i) % queues_.size()];
    for (Part* const part : {&other.near, &other.far}) {
      if (part->full.empty()) continue;
      const Block block = part->full.back();
      part->full.pop_back();
      return block;
    }
  }
  return kNone;
}

bool VisitorQueues::take(unsigned thread, std::vector<uint64_t>& vertices) {
  BENCH_CHECK(thread < queues_.size());
  Block block = kNone;
  {
    std::unique_lock lock(mutex_);
    while ((block = take_own(queues_[thread])) == kNone &&
           (block = take_from_others(thread)) == kNone && !is_done_) {
      if (++waiting_ == queues_.size()) {
        is_done_ = true;
        news_.notify_all();
      } else {
        news_.wait(lock);
      }
      if (!is_done_) --waiting_;
    }
    if (block == kNone) return false;
  }
  at(block).copy_sorted(vertices);
  const std::lock_guard lock(mutex_);
  free_.push_back(block);
  return true;
}

}  // namespace outcore::bench
