// BouncePool: the buffers through which bytes travel between stores and frames. Made once, inside
// the budget.
//
// Two sizes: small ones for single system pages, chunks for larger transfers. A buffer is held only
// during one transfer, so a wait for one ends when some transfer does. The fault path: no
// allocation, no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/os/address_space.h"
#include "core/os/wait.h"
#include "outcore/result.h"

namespace outcore::budget {

class BouncePool {
 public:
  struct Shape {
    uint32_t small_count = 0;
    uint32_t chunk_count = 0;
    uint64_t chunk_bytes = 0;
    uint64_t total_bytes() const {
      return small_count * uint64_t{4096} + chunk_count * chunk_bytes;
    }
  };
  // What a budget of this size can spare: about 1/32 of it, at most 9 MiB.
  static Shape shape_for(uint64_t budget_bytes);

  BouncePool() = default;
  ~BouncePool();
  BouncePool(const BouncePool&) = delete;
  BouncePool& operator=(const BouncePool&) = delete;
  Status allocate(const Shape& shape);

  // A buffer of at least size_bytes, if one is free that is large enough; else empty. The span says
  // how large it is: a request above the chunk size gets a chunk.
  std::span<std::byte> try_take(uint64_t size_bytes);
  // The same, waiting until one is free.
  std::span<std::byte> take(uint64_t size_bytes);
  void give(std::span<std::byte> buffer);
  // A glance: it may be gone by the time it is asked for.
  bool has_chunk() const {
    return static_cast<uint32_t>(stack_[1].head.load(std::memory_order_relaxed)) != kEmpty;
  }

  const Shape& shape() const { return shape_; }
  std::span<std::byte> memory() const { return {memory_, shape_.total_bytes()}; }

 private:
  static constexpr uint32_t kEmpty = 0xFFFFFFFF;
  static constexpr uint32_t kTaken = 0xFFFFFFFE;  // in place of the next one
  struct Stack {
    std::atomic<uint64_t> head{kEmpty};
    os::Table<std::atomic<uint32_t>> next;
    std::atomic<uint32_t> changes{0};
    std::atomic<uint32_t> waiters{0};
  };
  static uint32_t pop(Stack& stack);
  static void push(Stack& stack, uint32_t i);
  std::byte* chunks() const { return memory_ + shape_.small_count * uint64_t{4096}; }

  Shape shape_;
  std::byte* memory_ = nullptr;
  std::array<Stack, 2> stack_;  // small ones, chunks
};

}  // namespace outcore::budget
