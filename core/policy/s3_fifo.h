// S3Fifo: most pages are touched once; only pages that return get a lasting place. The holder of
// the shard's turn calls it.
//
// Yang et al., "FIFO queues are all you need for cache eviction" (SOSP 2023), without the access
// bits that a pager does not have. New pages join a small queue (3 % of the memory). Pages evicted
// from it are remembered as ghosts. A page that returns soon joins the main queue (before as many
// have left as 18 % of the frames: without access bits, a longer time would promote pages that are
// not hot). So does a rescued page, because it is in use. Victims come from the small queue while
// it exceeds its share, otherwise from the main queue. Until memory is full for the first time,
// pages join the main queue up to its share (our addition: the second pass of a loop then hits the
// beginning, instead of missing nearly everything). Pages that nobody asked for join the small
// queue even then, so that they leave before those that were asked for; and they leave no ghost,
// because their first touch would look like a return.
//
// What the main queue holds may be of no use any more: a program that has gone on to other data
// would miss all of it for ever, although it may fit. So some ghosts are kept for longer, and the
// main queue gives up one page in 128 victims, to see which come back. If pages of the small queue
// do, and those of the main queue do not, all pages join the main queue until it has changed its
// own (our addition as well).
//
// Why it is the default: a loop over 1.2 times the memory misses 20 %, where FIFO, LRU and CLOCK
// miss everything. With `cool=N%`, that share of the memory stays leaving before it is freed, and
// rescues show which pages are in use.
#pragma once

#include <array>

#include "core/policy/ghost_table.h"
#include "core/policy/policy_name.h"
#include "core/policy/queue_policy.h"
#include "core/policy/victim_returns.h"

namespace outcore::policy {

class S3Fifo final : public QueuePolicy {
 public:
  static constexpr std::string_view kName = "s3-fifo";
  using Parameters = std::array<Parameter, 3>;
  // small: the share of the small queue. ghosts: pages that may leave, in percent of the frames,
  // before one that returns is not promoted any more; 0%: nothing is remembered. cool: the share
  // that stays leaving.
  static constexpr Parameters kParameters = {
      {{"small", 3, 1, 90}, {"ghosts", 18, 0, 400}, {"cool", 0, 0, 50}}};

  explicit S3Fifo(const Parameters& parameters)
      : QueuePolicy(parameters[2].value), parameters_(parameters) {}
  Status allocate(size_t frames_max);

  bool is_valid() const override {
    return QueuePolicy::is_valid() && ghosts_.is_valid() && late_ghosts_.is_valid() &&
           looks_.is_valid();
  }
  std::string name() const override { return format_name(kName, parameters_); }
  size_t metadata_bytes() const override {
    return entries_.touched() + ghosts_.metadata_bytes() + late_ghosts_.metadata_bytes() +
           looks_.metadata_bytes();
  }

 private:
  Queue admit(Entry& entry) override;
  Queue readmit(Entry& entry) override;
  Queue admit_guess(Entry& entry) override;
  Queue admit_taken_over(Entry& entry) override;
  FrameId pick() override;
  void forget(const Entry& entry, bool was_victim) override;
  void capacity_changed() override;

  // The small queue may grow to this share if pages return too soon. It shrinks by one page for
  // each kPatience pages that do not.
  static constexpr uint64_t kSmallPercentMax = 30;
  static constexpr uint32_t kPatience = 16;
  void adapt(bool came_too_soon);

  bool must_renew() const;
  void count_eviction();
  // A renewal takes as many periods as the main queue needs to change all of its pages.
  static constexpr uint32_t kEvictionsALook = 128, kPeriodLeast = 2048, kRenewal = 2;
  // A renewal that was of no use is not repeated soon: the wait until the next one doubles, and is
  // halved in each kQuietPeriods without one.
  static constexpr uint32_t kQuietPeriods = 16, kWaitMost = 256;
  // Late returns are watched of one page in kWatchShare, within 1.3 times the memory.
  static constexpr uint64_t kWatchShare = 4;
  static bool is_watched(PageKey key) { return key % kWatchShare == 0; }
  static uint64_t late_history(uint64_t frames) {
    return (frames / 10 * 13 + kPeriodLeast) / kWatchShare;
  }
  static uint64_t looks_history(uint64_t frames) { return frames / 64 + kEvictionsALook; }
  bool remembers() const { return parameters_[1].value != 0; }

  const Parameters parameters_;
  GhostTable ghosts_;       // of the small queue, young
  GhostTable late_ghosts_;  // of the small queue, those that are watched
  GhostTable looks_;        // of the main queue, those that it gave up as a look
  VictimReturns small_returns_, main_returns_;  // of the ghosts that are watched
  uint64_t evictions_ = 0;                      // of this period
  uint32_t renewing_ = 0;                 // periods for which all pages still join the main queue
  uint32_t quiet_ = 0, wait_ = 0;         // periods since the last renewal; before the next one
  uint64_t next_look_ = kEvictionsALook;  // after so many evictions of this period
  size_t planned_ = 0;                    // the capacity for which there are ghosts
  size_t small_least_ = 1, small_target_ = 1;
  uint32_t patience_ = 0;
  size_t main_share_ = 0;
  bool has_been_full_ = false;
};

}  // namespace outcore::policy
