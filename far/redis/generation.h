// Holder: who holds a thing of which a forked child must not believe that it is held. The fault
// path.
//
// A process may fork while another thread holds a connection or a lock; that thread does not exist
// in the child. So whoever holds something notes the generation of its process: after a fork the
// child has another generation.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/os/at_fork.h"

namespace outcore::redis {

// Never 0. A forked child has another one.
inline uint32_t generation() { return os::process_generation(); }

class Holder {
 public:
  bool try_lock() {
    uint32_t seen = word_.load(std::memory_order_relaxed);
    const uint32_t ours = generation();
    return seen != ours && word_.compare_exchange_strong(seen, ours, std::memory_order_acquire);
  }
  void unlock() { word_.store(0, std::memory_order_release); }

 private:
  std::atomic<uint32_t> word_{0};
};

// HeadCount: how many threads of this process are in a certain place. Threads of its parent do not
// count.
class HeadCount {
 public:
  void enter() { change(1); }
  void leave() { change(-1); }
  bool is_any() const {
    const uint64_t word = word_.load();
    return word >> 32 == generation() && (word & UINT32_MAX) != 0;
  }

 private:
  void change(int by) {
    uint64_t seen = word_.load(), next = 0;
    do {
      const uint64_t count = seen >> 32 == generation() ? seen & UINT32_MAX : 0;
      next = uint64_t{generation()} << 32 | (count + static_cast<uint64_t>(by));
    } while (!word_.compare_exchange_weak(seen, next));
  }
  std::atomic<uint64_t> word_{0};  // generation and count
};

}  // namespace outcore::redis
