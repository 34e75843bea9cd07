// QueuePolicy: the common part of all our policies: each frame is in one of up to two queues, or
// leaving. A policy decides which queue a page joins and which frame is evicted; this class keeps
// the lists and checks them. The holder of the shard's turn.
#pragma once

#include "core/base/assert.h"
#include "core/policy/frame_list.h"
#include "outcore/policy.h"

namespace outcore::policy {

class QueuePolicy : public Policy {
 public:
  QueuePolicy(const QueuePolicy&) = delete;
  QueuePolicy& operator=(const QueuePolicy&) = delete;

  void filled(FrameId frame, PageKey key) final;
  void guessed(FrameId frame, PageKey key) final;
  void taken_over(FrameId frame, PageKey key) final;
  size_t choose_victims(std::span<FrameId> out) final;
  void rescued(FrameId frame) final;
  void freed(FrameId frame) final;
  void removed(FrameId frame) final;
  size_t leaving_target() const final;
  void set_capacity(size_t frames) final;
  PageKey key_of(FrameId frame) const final;
  bool is_resident(FrameId frame) const final;
  size_t resident_count() const final { return first().size() + second().size(); }
  size_t leaving_count() const final { return list(Queue::kLeaving).size(); }
  bool is_valid() const override;
  size_t metadata_bytes() const override { return entries_.touched(); }

 protected:
  // `leaving_percent` of the capacity stays leaving before it is freed.
  explicit QueuePolicy(uint64_t leaving_percent) : leaving_percent_(leaving_percent) {}
  // REQUIRES: called once, first. Errors: ENOMEM.
  Status allocate_entries(size_t frames_max) { return entries_.allocate(frames_max); }

  // The queue that a new page joins; and the queue that a rescued page joins.
  virtual Queue admit(Entry& entry) = 0;
  virtual Queue readmit(Entry& entry) = 0;
  // The queue that a page joins for which nobody asked.
  virtual Queue admit_guess(Entry& entry) { return admit(entry); }
  // The queue that a page joins which another policy had.
  virtual Queue admit_taken_over(Entry& entry) { return admit(entry); }
  // Removes a frame from its queue and returns it as the victim. REQUIRES: a frame is resident.
  virtual FrameId pick() = 0;
  // The page of the entry is gone: freed as a victim, or removed from the policy.
  virtual void forget(const Entry& entry, bool was_victim) = 0;
  virtual void capacity_changed() {}

  FrameList& list(Queue queue) {
    OC_ASSERT(static_cast<size_t>(queue) < kQueues);
    return lists_[static_cast<size_t>(queue)];
  }
  const FrameList& list(Queue queue) const {
    OC_ASSERT(static_cast<size_t>(queue) < kQueues);
    return lists_[static_cast<size_t>(queue)];
  }
  FrameList& first() { return list(Queue::kFirst); }
  const FrameList& first() const { return list(Queue::kFirst); }
  FrameList& second() { return list(Queue::kSecond); }
  const FrameList& second() const { return list(Queue::kSecond); }
  Entry& entry_of(FrameId frame);
  // Percent of the capacity, in frames.
  size_t share(uint64_t percent) const {
    return capacity_ / 100 * percent + capacity_ % 100 * percent / 100;
  }

  EntryTable entries_;
  size_t capacity_ = 0;

 private:
  void join(FrameId frame, PageKey key, Queue (QueuePolicy::*queue_for)(Entry&));
  void remove_entry(FrameId frame, Entry& entry, bool was_victim);
  const uint64_t leaving_percent_;
  FrameList lists_[kQueues] = {FrameList(Queue::kUnknown), FrameList(Queue::kLeaving),
                               FrameList(Queue::kFirst), FrameList(Queue::kSecond)};
};

}  // namespace outcore::policy
