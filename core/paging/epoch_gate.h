// EpochGate: who may change a cache's store. While a cut is being stored nobody but the cut may:
// what was written after it belongs to the next epoch.
//
// Whoever stores something enters first, or holds a turn and looks: a cut closes the gate, and then
// takes every turn once.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::paging {

class EpochGate {
 public:
  // Any thread, the fault path. False if it is closed.
  bool try_enter() {
    uint32_t seen = word_.load(std::memory_order_acquire);
    while ((seen & kClosed) == 0)
      if (word_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) return true;
    return false;
  }
  // Waits while it is closed. REQUIRES: the caller holds nothing that a cut waits for.
  void enter() {
    while (!try_enter()) wait_until_open();
  }
  void leave() {
    const uint32_t before = word_.fetch_sub(1, std::memory_order_acq_rel);
    OC_CHECK((before & ~kClosed) != 0);
    if ((before & kClosed) != 0) os::wake_all(&word_);
  }
  bool is_closed() const { return (word_.load(std::memory_order_acquire) & kClosed) != 0; }
  // A cut takes as long as its pages take to be stored.
  void wait_until_open() {
    for (uint32_t seen; ((seen = word_.load(std::memory_order_acquire)) & kClosed) != 0;)
      os::wait(&word_, seen, 100'000'000);
  }

  // A cut, one at a time. Afterwards nobody is inside: waits for transfers that are under way.
  void close() {
    const uint32_t before = word_.fetch_or(kClosed, std::memory_order_seq_cst);
    OC_CHECK((before & kClosed) == 0);
    for (uint32_t seen; (seen = word_.load(std::memory_order_acquire)) != kClosed;)
      os::wait(&word_, seen, 100'000'000);
  }
  void open() {
    const uint32_t before = word_.fetch_and(~kClosed, std::memory_order_seq_cst);
    OC_CHECK(before == kClosed);
    os::wake_all(&word_);
  }

 private:
  static constexpr uint32_t kClosed = uint32_t{1} << 31;
  std::atomic<uint32_t> word_{0};  // the low bits: how many are inside
};

}  // namespace outcore::paging
