// Holder: who holds something that no forked child may inherit as held. The fault path.
//
// A fork may happen while another thread holds a connection or a lock; that thread does not exist
// in the child. So what is held carries the generation of the process that took it: a process
// counts as a new one after fork.
#pragma once

#include <atomic>
#include <cstdint>

namespace outcore::redis {

// Never 0. Another one in a forked child.
uint32_t generation();

class Holder {
 public:
  bool try_take() {
    uint32_t seen = word_.load(std::memory_order_relaxed);
    const uint32_t ours = generation();
    return seen != ours && word_.compare_exchange_strong(seen, ours, std::memory_order_acquire);
  }
  void give() { word_.store(0, std::memory_order_release); }

 private:
  std::atomic<uint32_t> word_{0};
};

}  // namespace outcore::redis
