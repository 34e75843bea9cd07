// Gate: many who pass, and one who now and then keeps everybody out for a moment.
//
// Writers pass it around the few instructions with which they enter a chunk into the map; a commit
// closes it while it notes what changed. Allocates nothing; the fault path. Whoever passes has
// signals blocked, so that it is never stopped inside.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::versioned {

class Gate {
 public:
  void enter() {
    while (true) {
      uint32_t state = state_.load(std::memory_order_relaxed);
      if ((state & kClosed) != 0) {
        os::wait(&state_, state, kWaitNs);
        continue;
      }
      if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) return;
    }
  }
  void leave() {
    OC_ASSERT((state_.load(std::memory_order_relaxed) & ~kClosed) != 0);
    if (state_.fetch_sub(1, std::memory_order_release) - 1 == kClosed) os::wake_all(&state_);
  }
  // Nobody is inside when it returns. REQUIRES: one caller at a time.
  void close() {
    uint32_t state = state_.fetch_or(kClosed, std::memory_order_acquire) | kClosed;
    for (; state != kClosed; state = state_.load(std::memory_order_acquire))
      os::wait(&state_, state, kWaitNs);
  }
  void open() {
    OC_ASSERT(is_closed());
    state_.fetch_and(~kClosed, std::memory_order_release);
    os::wake_all(&state_);
  }
  // For assertions of those who close it.
  bool is_closed() const { return (state_.load(std::memory_order_relaxed) & kClosed) != 0; }

 private:
  static constexpr uint32_t kClosed = 1u << 31;
  static constexpr uint64_t kWaitNs = 10'000'000;  // then it looks again
  std::atomic<uint32_t> state_{0};                 // how many are inside, and whether it is closed
};

// Passes the gate for a scope.
class Passing {
 public:
  explicit Passing(Gate& gate) : gate_(gate) { gate_.enter(); }
  ~Passing() { gate_.leave(); }
  Passing(const Passing&) = delete;
  Passing& operator=(const Passing&) = delete;

 private:
  Gate& gate_;
};

}  // namespace outcore::versioned
