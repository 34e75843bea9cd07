// UseEvidence: how often pages that lay beside an asked page were asked for as well, by how far
// away they lay. Any thread; the fault path: no lock, a count may be lost where two threads meet.
//
// Distance is counted in rings, of one of two kinds. Around a page ring 1 is the other half of the
// aligned pair of pages that contains the asked one, ring 2 the other half of the aligned four, and
// so on: a cluster of 2^k aligned pages consists of the asked page and rings 1 … k. Ahead of it
// ring 1 is the next page, ring 2 the two behind that, ring 3 the next four: a cluster of 2^k pages
// that begins with the asked one consists of it and of rings 1 … k of this kind.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/base/assert.h"
#include "core/prefetch/use_count.h"

namespace outcore::prefetch {

class UseEvidence {
 public:
  static constexpr uint32_t kRings = 8;  // ring 0 is the asked page itself, and not used

  // A page of the ring is being watched: it was not brought in, and will be asked for, or not.
  void watch(uint32_t ring) { count_of(ring).watch(); }
  // A watched page of the ring was asked for.
  void use(uint32_t ring) { count_of(ring).use(); }
  // A watched page came in before it could be asked for: nothing is known of it.
  void unwatch(uint32_t ring) { count_of(ring).unwatch(); }
  UseCount::Value count(uint32_t ring) const {
    OC_ASSERT(ring < kRings);
    return ring_[ring].value();
  }
  // Pages of rings 1 … ring that were watched.
  uint32_t watched_within(uint32_t ring) const {
    OC_CHECK(ring < kRings);
    uint32_t watched = 0;
    for (uint32_t i = 1; i <= ring; ++i) watched += count(i).watched;
    return watched;
  }
  // The share of the ring's pages that are asked for, see UseCount.
  double share(uint32_t ring, double prior) const {
    OC_ASSERT(ring < kRings);
    return ring_[ring].share(prior);
  }
  // The same for all rings: `shares` is what is believed of another, larger place, and becomes what
  // is believed of this one. Where this place has shown fewer uses than believed in some rings, or
  // more, the others are believed to be alike.
  using Shares = std::array<double, kRings>;
  void refine(Shares& shares) const {
    double believed = kDoubt, seen = kDoubt;
    for (uint32_t ring = 1; ring < kRings; ++ring) {
      const UseCount::Value now = count(ring);
      believed += now.watched * shares[ring];
      seen += now.used;
    }
    for (uint32_t ring = 1; ring < kRings; ++ring)
      shares[ring] = share(ring, std::min(shares[ring] * seen / believed, 1.0));
  }
  void clear() {
    for (UseCount& count : ring_) count.clear();
  }

 private:
  static constexpr double kDoubt = 2;  // uses, which are added to both sides of a comparison
  UseCount& count_of(uint32_t ring) {
    OC_CHECK(ring != 0 && ring < kRings);
    return ring_[ring];
  }

  std::array<UseCount, kRings> ring_;
};

}  // namespace outcore::prefetch
