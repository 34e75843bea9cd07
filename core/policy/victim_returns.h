// VictimReturns: of the victims of one queue, how many there were and how many of them were asked
// for again, by the period of evictions in which they left. The holder of the shard's turn.
//
// Victims of one period have all had as long to come back, so two queues can be compared by them,
// also where returns come in bursts, as in a loop. This period's have had no time yet.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/assert.h"

namespace outcore::policy {

class VictimReturns {
 public:
  static constexpr size_t kPeriods = 3;

  void leave() { ++left_[0]; }
  // One came back that left `age` victims of this queue ago.
  void come_back(uint64_t age) {
    for (size_t i = 0; i < kPeriods; ++i) {
      if (age < left_[i]) {
        if (back_[i] < left_[i]) ++back_[i];
        return;
      }
      age -= left_[i];
    }
  }
  void begin_period() {
    for (size_t i = kPeriods - 1; i > 0; --i) left_[i] = left_[i - 1], back_[i] = back_[i - 1];
    left_[0] = back_[0] = 0;
  }

  // Of the victims of so many periods ago: whether enough are known; whether at least a third came
  // back; whether it were fewer than half as many as of those.
  bool are_known(size_t ago) const { return left_[checked(ago)] >= kLeast; }
  bool are_many(size_t ago) const { return back_[checked(ago)] * 3 >= left_[ago]; }
  bool are_far_below(const VictimReturns& those, size_t ago) const {
    OC_ASSERT(are_known(ago) && those.are_known(ago));
    return 2 * back_[ago] * those.left_[ago] < those.back_[ago] * left_[ago];
  }

 private:
  static constexpr uint64_t kLeast = 12;
  static size_t checked(size_t ago) {
    OC_CHECK(ago != 0 && ago < kPeriods);
    return ago;
  }

  uint64_t left_[kPeriods] = {}, back_[kPeriods] = {};  // this period comes first
};

}  // namespace outcore::policy
