// UseEvidence: how often pages that lay beside an asked page were asked for as well, by how far
// away they lay. Any thread; the fault path: no lock, a count may be lost where two threads meet.
//
// Distance is counted in rings: ring 1 is the other half of the aligned pair of pages that contains
// the asked one, ring 2 the other half of the aligned four, and so on. A cluster of 2^k aligned
// pages consists of the asked page and rings 1 … k.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "core/base/assert.h"

namespace outcore::prefetch {

class UseEvidence {
 public:
  static constexpr uint32_t kRings = 8;         // ring 0 is the asked page itself, and not used
  static constexpr uint32_t kWatchedMax = 256;  // then both counts are halved: old news fades

  struct Count {
    uint32_t watched = 0, used = 0;
  };

  // A page of the ring is being watched: it was not brought in, and will be asked for, or not.
  void watch(uint32_t ring) {
    OC_CHECK(ring != 0 && ring < kRings);
    Count now = count(ring);
    if (++now.watched >= kWatchedMax) now = {now.watched / 2, now.used / 2};
    set(ring, now);
  }
  // A watched page of the ring was asked for.
  void use(uint32_t ring) {
    OC_CHECK(ring != 0 && ring < kRings);
    Count now = count(ring);
    if (now.used < now.watched) ++now.used;
    set(ring, now);
  }
  // A watched page came in before it could be asked for: nothing is known of it.
  void unwatch(uint32_t ring) {
    OC_CHECK(ring != 0 && ring < kRings);
    Count now = count(ring);
    if (now.watched > now.used) --now.watched;
    set(ring, now);
  }
  Count count(uint32_t ring) const {
    OC_ASSERT(ring < kRings);
    const uint32_t word = ring_[ring].load(std::memory_order_relaxed);
    OC_ASSERT((word >> 16) <= (word & 0xFFFF));
    return {word & 0xFFFF, word >> 16};
  }
  // Pages of rings 1 … ring that were watched.
  uint32_t watched_within(uint32_t ring) const {
    OC_CHECK(ring < kRings);
    uint32_t watched = 0;
    for (uint32_t i = 1; i <= ring; ++i) watched += count(i).watched;
    return watched;
  }
  // The share of the ring's pages that are asked for. `prior` is what is believed without any
  // evidence, and weighs as much as kPriorWeight watched pages.
  double share(uint32_t ring, double prior) const {
    OC_ASSERT(prior >= 0 && prior <= 1);
    const Count now = count(ring);
    return (now.used + prior * kPriorWeight) / (now.watched + kPriorWeight);
  }
  // The same for all rings: `shares` is what is believed of another, larger place, and becomes what
  // is believed of this one. Where this place has shown fewer uses than believed in some rings, or
  // more, the others are believed to be alike.
  using Shares = std::array<double, kRings>;
  void refine(Shares& shares) const {
    double believed = kDoubt, seen = kDoubt;
    for (uint32_t ring = 1; ring < kRings; ++ring) {
      const Count now = count(ring);
      believed += now.watched * shares[ring];
      seen += now.used;
    }
    for (uint32_t ring = 1; ring < kRings; ++ring)
      shares[ring] = share(ring, std::min(shares[ring] * seen / believed, 1.0));
  }
  void clear() {
    for (std::atomic<uint32_t>& word : ring_) word.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr double kPriorWeight = 4;
  static constexpr double kDoubt = 2;  // uses, which are added to both sides of a comparison
  void set(uint32_t ring, Count now) {
    OC_ASSERT(now.used <= now.watched);
    ring_[ring].store(now.used << 16 | now.watched, std::memory_order_relaxed);
  }

  std::array<std::atomic<uint32_t>, kRings> ring_{};
};

}  // namespace outcore::prefetch
