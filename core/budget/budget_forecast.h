// BudgetForecast: how large a budget may be that follows what the machine has left. It computes and
// returns: no clock, no I/O, no allocation. One thread at a time.
//
// In each period it gets what is available and what the budget's pages use. Page cache counts as
// available, our pages as used; so
//
//   obtainable = available + used              what we would have if we left nothing to others
//   change     = of obtainable, per time       whatever we do ourselves: only others move it
//   fall       = - max(median, mean) of the last N changes x M periods, or 0
//   could      = obtainable - fall - margin    what we may have
//
// - could < budget: the budget shrinks to it, at once; but only by a quarter for what is expected
//   and not taken yet, as a neighbour that takes all it wants within a few periods then stops.
// - The kernel counts stalls for want of memory (PSI) that go on: it shrinks by an eighth every
//   half second, whatever is available, but by that alone not below half of `could`: others may
//   have filled a limit of their own, where nothing that we give helps them.
// - Neither for four periods: it grows, by an eighth a period, up to the least that `could` was in
//   the last N changes, less a slack; under pressure, up to half of it.
//
// The forecast is UMap's (IEEE TPDS 2021, section 3.1.1): a history of N = 5 periods, M = 10 ahead.
// UMap does not say how the history becomes a forecast. Here the change that counts is the lesser
// fall of median and mean: a neighbour that takes much once moves the mean alone, which is not a
// trend, and one that comes and goes moves the median alone. The margin is for the neighbours, the
// kernel's page cache and the time that we need to shrink. The slack keeps a budget that has grown
// as far as it can from being moved by noise: less than a sixth of it up and down moves nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/os/memory_pressure.h"

namespace outcore::budget {

struct BudgetSample {
  uint64_t at_ns = 0;                          // never less than in the sample before
  uint64_t available_bytes = 0;                // what the machine and the cgroups have left
  uint64_t limit_bytes = 0;                    // what they have at all
  uint64_t used_bytes = 0;                     // of the budget, in memory
  uint64_t budget_bytes = 0;                   // in whole system pages, as in decisions
  uint64_t least_bytes = 0;                    // with less the pager cannot do now: buffers, pins
  std::optional<os::MemoryPressure> pressure;  // nullopt: the kernel does not count it
};

struct BudgetDecision {
  uint64_t budget_bytes = 0;
  bool is_urgent = false;  // memory is being taken: look again soon
};

class BudgetForecast {
 public:
  static constexpr size_t kChanges = 5;          // N
  static constexpr uint64_t kPeriodsAhead = 10;  // M
  static constexpr uint64_t kPeriodNs = 100'000'000;
  static constexpr uint64_t kCalmPeriods = 4;       // before it grows
  static constexpr uint64_t kStepShare = 8;         // of the budget: a step up, or down by pressure
  static constexpr uint64_t kEaseNs = 500'000'000;  // between two steps down by pressure
  // Some task stood still for this share of the last ten seconds, or all did: pressure.
  static constexpr double kSomePercent = 10, kFullPercent = 5;

  // The budget stays within both, and shrinks no further than to what the pager needs, which never
  // makes it grow. REQUIRES: min <= max.
  BudgetForecast(uint64_t min_bytes, uint64_t max_bytes);

  // The budget from now on; the same as it was if nothing is to be done.
  BudgetDecision next(const BudgetSample& sample);

  // What is left to others: 64 MiB, or a twentieth of all if that is more, but a quarter at most.
  static uint64_t margin_of(uint64_t limit_bytes);

 private:
  struct Seen {
    uint64_t at_ns = 0, obtainable_bytes = 0;
  };
  // The i-th last one: 0 is the newest. REQUIRES: i < count_.
  const Seen& seen(size_t i) const { return seen_[(next_ + seen_.size() - 1 - i) % seen_.size()]; }
  void remember(const BudgetSample& sample);
  void note_pressure(const BudgetSample& sample);
  uint64_t expected_fall() const;
  uint64_t lowest_obtainable() const;
  uint64_t grown(const BudgetSample& sample, uint64_t could_bytes, uint64_t slack_bytes);
  bool is_valid() const;

  const uint64_t min_bytes_, max_bytes_;
  std::array<Seen, kChanges + 1> seen_{};
  size_t next_ = 0, count_ = 0;
  uint64_t calm_since_ns_ = 0, grown_ns_ = 0, eased_ns_ = 0;
  uint64_t stalled_us_ = 0;
  bool has_stalled_us_ = false;
  bool is_pressed_ = false;   // in the last ten seconds
  bool is_stalling_ = false;  // and it goes on
};

}  // namespace outcore::budget
