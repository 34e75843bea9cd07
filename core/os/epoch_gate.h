// EpochGate: many who pass, and one who now and then keeps everybody out.
//
// Whoever changes something enters first. Who closes the gate waits until nobody is inside: what is
// changed after that belongs to the next epoch. A cut closes those of its page caches while it is
// stored, and then takes every turn once: whoever holds a turn need not enter, but looks
// (is_closed). A commit of a pool closes it while it notes what changed.
//
// Any thread; the fault path. Whoever is inside has signals blocked: a handler that enters a gate
// that was closed meanwhile would wait for its own thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::os {

class EpochGate {
 public:
  // False if it is closed.
  bool try_enter() {
    uint32_t seen = word_.load(std::memory_order_acquire);
    while ((seen & kClosed) == 0)
      if (word_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) return true;
    return false;
  }
  // Waits while it is closed. REQUIRES: the caller holds nothing that the one who closed it waits
  // for.
  void enter() {
    while (!try_enter()) wait_until_open();
  }
  void leave() {
    const uint32_t before = word_.fetch_sub(1, std::memory_order_acq_rel);
    OC_CHECK((before & ~kClosed) != 0);
    if (before == (kClosed | 1)) wake_all(&word_);  // the last one
  }
  bool is_closed() const { return (word_.load(std::memory_order_acquire) & kClosed) != 0; }
  void wait_until_open() {
    for (uint32_t seen; ((seen = word_.load(std::memory_order_acquire)) & kClosed) != 0;)
      wait(&word_, seen, kWaitNs);
  }

  // One caller at a time. Afterwards nobody is inside.
  void close() {
    const uint32_t before = word_.fetch_or(kClosed, std::memory_order_seq_cst);
    OC_CHECK((before & kClosed) == 0);
    for (uint32_t seen; (seen = word_.load(std::memory_order_acquire)) != kClosed;)
      wait(&word_, seen, kWaitNs);
  }
  void open() {
    const uint32_t before = word_.fetch_and(~kClosed, std::memory_order_seq_cst);
    OC_CHECK(before == kClosed);
    wake_all(&word_);
  }

 private:
  static constexpr uint32_t kClosed = uint32_t{1} << 31;
  static constexpr uint64_t kWaitNs = 100'000'000;  // then it looks again
  std::atomic<uint32_t> word_{0};                   // the low bits: how many are inside
};

// Passes the gate for a scope.
class Passing {
 public:
  explicit Passing(EpochGate& gate) : gate_(gate) { gate_.enter(); }
  ~Passing() { gate_.leave(); }
  Passing(const Passing&) = delete;
  Passing& operator=(const Passing&) = delete;

 private:
  EpochGate& gate_;
};

}  // namespace outcore::os
