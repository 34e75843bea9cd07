// SpacePool: a fixed number of pieces of memory, for work that must not allocate. The fault path.
//
// A piece costs nothing before it is first used. Whoever holds one never waits for a thread that
// wants one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "far/redis/generation.h"

namespace outcore::redis {

class SpacePool {
 public:
  static constexpr size_t kAlignment = 64;

  SpacePool(size_t count, size_t bytes_each);
  ~SpacePool();
  SpacePool(const SpacePool&) = delete;
  SpacePool& operator=(const SpacePool&) = delete;

  // False: the kernel had no memory.
  bool is_made() const { return first_ != nullptr; }
  // nullptr: all pieces were in use until the deadline. REQUIRES: is_made().
  std::byte* acquire(uint64_t deadline_ns);
  void release(const std::byte* piece);

 private:
  const size_t count_, stride_;
  std::byte* first_ = nullptr;  // the kernel's: a program may have put its own allocator in managed
                                // memory
  std::unique_ptr<Holder[]> holders_;
  std::atomic<uint32_t> given_{0};  // counts releases: a thread that waits for a piece sleeps on it
};

// Takes a piece when it is first asked for, and keeps it for the scope.
class Space {
 public:
  // nullptr: get() is never called.
  explicit Space(SpacePool* pool) : pool_(pool) {}
  ~Space() {
    if (piece_ != nullptr) pool_->release(piece_);
  }
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  std::byte* get(uint64_t deadline_ns) {
    if (piece_ == nullptr) piece_ = pool_->acquire(deadline_ns);
    return piece_;
  }

 private:
  SpacePool* const pool_;
  std::byte* piece_ = nullptr;
};

}  // namespace outcore::redis
