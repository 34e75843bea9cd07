// BouncePool: the buffers through which bytes are copied between stores and frames. Allocated once,
// as part of the budget.
//
// There are two sizes: small buffers for single system pages, and chunks for larger transfers. A
// buffer is used only during one transfer, so a wait for a buffer ends when a transfer ends. Any
// thread, the fault path: no allocation, no lock.
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
  // The pool for a budget of this size: about 1/32 of it, at most 9 MiB.
  static Shape shape_for(uint64_t budget_bytes);

  BouncePool() = default;
  ~BouncePool();
  BouncePool(const BouncePool&) = delete;
  BouncePool& operator=(const BouncePool&) = delete;
  // `own_bytes` are allocated in addition, for the owner's own transfers: own().
  Status allocate(const Shape& shape, uint64_t own_bytes = 0);

  // A free buffer of at least size_bytes, or an empty span. The span is as large as the buffer. For
  // a request above the chunk size it is a chunk.
  std::span<std::byte> try_acquire(uint64_t size_bytes);
  // The same, but waits until one is free.
  std::span<std::byte> acquire(uint64_t size_bytes);
  void release(std::span<std::byte> buffer);
  // Whether a chunk is free; may be out of date when it returns.
  bool has_chunk() const {
    return static_cast<uint32_t>(stack_[1].head.load(std::memory_order_relaxed)) != kEmpty;
  }

  const Shape& shape() const { return shape_; }
  std::span<std::byte> own() const {
    return {memory_ + shape_.chunk_count * shape_.chunk_bytes, own_bytes_};
  }
  // All of it.
  std::span<std::byte> memory() const { return {memory_, shape_.total_bytes() + own_bytes_}; }

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
  // The small buffers lie last: the chunks are to begin on a huge page, by which these gain
  // nothing.
  std::byte* smalls() const { return own().data() + own_bytes_; }

  Shape shape_;
  uint64_t own_bytes_ = 0;
  std::byte* memory_ = nullptr;
  std::array<Stack, 2> stack_;  // [0]: small buffers, [1]: chunks
};

}  // namespace outcore::budget
