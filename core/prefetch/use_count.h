// UseCount: of the pages (or boundaries) that were watched, how many were used. One word; any
// thread; the fault path: no lock, a count may be lost where two threads meet.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/assert.h"

namespace outcore::prefetch {

class UseCount {
 public:
  static constexpr uint32_t kWatchedMax = 256;

  struct Value {
    uint32_t watched = 0, used = 0;
  };

  // One more is being watched: it will be used, or not. At `most` both counts are halved: old news
  // fades.
  void watch(uint32_t most = kWatchedMax) {
    OC_CHECK(most > 1 && most <= kWatchedMax);
    Value now = value();
    if (++now.watched >= most) now = {now.watched / 2, now.used / 2};
    set(now);
  }
  // One that is watched was used.
  void use() {
    Value now = value();
    if (now.used < now.watched) ++now.used;
    set(now);
  }
  // Nothing will be known of one that is watched.
  void unwatch() {
    Value now = value();
    if (now.watched > now.used) --now.watched;
    set(now);
  }
  Value value() const {
    const uint32_t word = word_.load(std::memory_order_relaxed);
    OC_ASSERT((word >> 16) <= (word & 0xFFFF));
    return {word & 0xFFFF, word >> 16};
  }
  // The share that is used. `prior` is what is believed without any evidence, and weighs as much as
  // kPriorWeight that were watched.
  double share(double prior) const {
    OC_ASSERT(prior >= 0 && prior <= 1);
    const Value now = value();
    return (now.used + prior * kPriorWeight) / (now.watched + kPriorWeight);
  }
  void clear() { word_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr double kPriorWeight = 4;
  void set(Value now) {
    OC_ASSERT(now.used <= now.watched);
    word_.store(now.used << 16 | now.watched, std::memory_order_relaxed);
  }

  std::atomic<uint32_t> word_{0};
};

}  // namespace outcore::prefetch
