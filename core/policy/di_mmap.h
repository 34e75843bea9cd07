// DiMmap: the policy of DI-MMAP, rule by rule. The holder of the shard's turn calls it.
//
// Van Essen et al., "DI-MMAP: a scalable memory-map runtime for out-of-core data-intensive
// applications" (Cluster Computing 2015), section 2:
//   1. A new page joins the primary FIFO. Its fault count starts with the count of its bucket.
//   2. The oldest page of the primary FIFO is displaced: to the hot FIFO if it was faulted more
//      often than the average of the buffer, otherwise to the eviction queue.
//   3. A page that joins a full hot FIFO displaces the oldest hot page to the eviction queue.
//   4. A page touched in the eviction queue goes to the primary FIFO; its fault count grows by one.
//   5. A page that is freed leaves its count to its bucket: if it is larger than the bucket's, it
//      replaces it; if equal, the bucket's count falls by one, but not below one; if smaller,
//      nothing changes.
// The eviction queue consists of our leaving frames: leaving_target() is its size. Where the paper
// has fixed queues, the primary FIFO uses what the hot FIFO leaves. The paper's largest gains are
// with 75 % of the buffer hot (its figures 11 and 13); it does not say how long its eviction queue
// was.
#pragma once

#include <array>

#include "core/policy/policy_name.h"
#include "core/policy/queue_policy.h"

namespace outcore::policy {

class DiMmap final : public QueuePolicy {
 public:
  static constexpr std::string_view kName = "di-mmap";
  using Parameters = std::array<Parameter, 3>;
  // hot, queue: the shares of the hot FIFO and of the eviction queue. buckets: number of fault
  // counts, 4 bytes each.
  static constexpr Parameters kParameters = {
      {{"hot", 75, 0, 90}, {"queue", 10, 0, 50}, {"buckets", 65536, 1, uint64_t{1} << 28, false}}};

  explicit DiMmap(const Parameters& parameters)
      : QueuePolicy(parameters[1].value), parameters_(parameters) {}
  Status allocate(size_t frames_max);

  bool is_valid() const override;
  std::string name() const override { return format_name(kName, parameters_); }
  size_t metadata_bytes() const override { return entries_.touched() + buckets_.touched(); }

 private:
  Queue admit(Entry& entry) override;
  Queue readmit(Entry& entry) override;
  FrameId pick() override;
  void forget(const Entry& entry, bool was_victim) override;
  void capacity_changed() override { hot_max_ = share(parameters_[0].value); }

  uint32_t& bucket_of(PageKey key);
  bool is_hot(const Entry& entry) const;
  // Pages in the buffer, including those in the eviction queue.
  uint64_t page_count() const { return resident_count() + leaving_count(); }

  const Parameters parameters_;
  os::Table<uint32_t> buckets_;  // fault count - 1, so that fresh memory means one
  uint64_t fault_sum_ = 0;       // of all pages in the buffer
  size_t hot_max_ = 0;
};

}  // namespace outcore::policy
