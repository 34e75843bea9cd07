// S3Fifo: most pages are touched once; only those that come back get a lasting place.
//
// Yang et al., "FIFO queues are all you need for cache eviction" (SOSP 2023), without the access
// bits that a pager does not have. New pages join a small queue (3 % of the memory). What leaves
// it is remembered as a ghost for a while (20 % of the memory's pages: without access bits, a
// longer memory promotes what has not shown that it is hot); a page that comes back meanwhile joins
// the main queue. A rescued page has shown that it is in use and joins the main queue as well. The
// small queue gives up pages while it is over its share, otherwise the main queue does. Until
// memory is full for the first time nothing competes, and pages join the main queue up to its share
// (our addition: the second pass of a loop finds the beginning, instead of missing nearly all).
//
// Why it is the default: a loop over 1.2 times the memory misses 20 %, where FIFO, LRU and CLOCK
// miss all. `cool=N%`: that share of the memory rests before it is freed, and recency is sampled by
// who is rescued there.
#pragma once

#include <array>

#include "core/policy/ghost_table.h"
#include "core/policy/policy_name.h"
#include "core/policy/queue_policy.h"

namespace outcore::policy {

class S3Fifo final : public QueuePolicy {
 public:
  static constexpr std::string_view kName = "s3-fifo";
  using Parameters = std::array<Parameter, 3>;
  // small: the small queue's share. ghosts: pages remembered, in percent of the frames. cool: the
  // resting share.
  static constexpr Parameters kParameters = {
      {{"small", 3, 1, 90}, {"ghosts", 20, 0, 400}, {"cool", 0, 0, 50}}};

  explicit S3Fifo(const Parameters& parameters)
      : QueuePolicy(parameters[2].value), parameters_(parameters) {}
  Status allocate(size_t frames_max);

  bool is_valid() const override { return QueuePolicy::is_valid() && ghosts_.is_valid(); }
  std::string name() const override { return format_name(kName, parameters_); }
  size_t metadata_bytes() const override { return entries_.touched() + ghosts_.metadata_bytes(); }

 private:
  Queue admit(Entry& entry) override;
  Queue readmit(Entry& entry) override;
  FrameId pick() override;
  void forget(const Entry& entry, bool was_victim) override;
  void capacity_changed() override;

  // The small queue may grow to this share where pages come back too soon, and shrinks by a page in
  // so many that do not.
  static constexpr uint64_t kSmallPercentMax = 30;
  static constexpr uint32_t kPatience = 16;
  void adapt(bool came_too_soon);

  const Parameters parameters_;
  GhostTable ghosts_;
  size_t small_least_ = 1, small_target_ = 1;
  uint32_t patience_ = 0;
  size_t main_share_ = 0;
  bool has_been_full_ = false;
};

}  // namespace outcore::policy
