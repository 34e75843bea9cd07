#include "core/policy/miniature.h"

#include <bit>

#include "core/base/assert.h"

namespace outcore::policy {

Status Miniature::allocate(const std::string& policy, uint32_t frames_max) {
  OC_CHECK(policy_ == nullptr);
  OC_CHECK(frames_max != 0);
  Result<std::unique_ptr<Policy>> made = make_policy(policy, frames_max, frames_max);
  if (!made) return made.error();
  policy_ = std::move(made).value();
  capacity_ = frames_max;
  if (Status s = entries_.allocate(frames_max); !s) return s;
  if (Status s = heads_.allocate(std::bit_ceil(uint64_t{frames_max})); !s) return s;
  return chain_.allocate(frames_max);
}

void Miniature::set_capacity(uint32_t frames) {
  OC_CHECK(frames != 0);
  OC_CHECK(frames <= entries_.count());
  capacity_ = frames;
  policy_->set_capacity(frames);
}

FrameId Miniature::find(PageKey key) {
  for (uint32_t link = head_of(key); link != kNone; link = chain_[link - 1])
    if (entries_[link - 1].key == key) return FrameId{link - 1};
  return kNoFrame;
}

Miniature::Outcome Miniature::touch(PageKey key, FrameId frame, bool is_guess,
                                    ProbeQueue& dropped) {
  while (count() > capacity_) evict_one(dropped);  // it has become smaller
  if (const FrameId slot = find(key); slot != kNoFrame) {
    Entry& entry = entries_[static_cast<uint32_t>(slot)];
    entry.faults = static_cast<uint32_t>(frame);
    if (entry.queue == Queue::kFirst) return Outcome::kHit;
    OC_ASSERT(entry.queue == Queue::kLeaving);
    if (is_guess) {
      dropped.push({key, frame});
      return Outcome::kHit;
    }
    leaving_.remove(entries_, slot);
    resident_.push(entries_, slot);
    policy_->rescued(slot);
    return Outcome::kRescue;
  }
  while (count() >= capacity_) evict_one(dropped);
  const FrameId slot = add(key, frame);
  if (is_guess)
    policy_->guessed(slot, key);
  else
    policy_->filled(slot, key);
  return Outcome::kMiss;
}

FrameId Miniature::add(PageKey key, FrameId frame) {
  FrameId slot = free_.pop(entries_);
  if (slot == kNoFrame) slot = FrameId{used_once_++};
  const auto i = static_cast<uint32_t>(slot);
  OC_CHECK(i < entries_.count());
  entries_[i].key = key;
  entries_[i].faults = static_cast<uint32_t>(frame);
  chain_[i] = head_of(key);
  head_of(key) = i + 1;
  resident_.push(entries_, slot);
  return slot;
}

// As the keeper does, but one at a time: victims join the leaving ones, and the oldest of these
// goes if there are more than the policy wants.
void Miniature::evict_one(ProbeQueue& dropped) {
  const size_t target = policy_->leaving_target();
  FrameId slot = kNoFrame;
  while (leaving_.size() <= target && policy_->choose_victims({&slot, 1}) == 1) {
    const Entry& entry = entries_[static_cast<uint32_t>(slot)];
    dropped.push({entry.key, FrameId{entry.faults}});
    resident_.remove(entries_, slot);
    leaving_.push(entries_, slot);
  }
  slot = leaving_.pop(entries_);
  OC_CHECK(slot != kNoFrame);
  policy_->freed(slot);
  drop(slot);
}

void Miniature::forget(PageKey key) {
  const FrameId slot = find(key);
  if (slot == kNoFrame) return;
  const Queue queue = entries_[static_cast<uint32_t>(slot)].queue;
  OC_CHECK(queue == Queue::kFirst || queue == Queue::kLeaving);
  policy_->removed(slot);
  (queue == Queue::kFirst ? resident_ : leaving_).remove(entries_, slot);
  drop(slot);
}

void Miniature::drop(FrameId slot) {
  const uint32_t link = static_cast<uint32_t>(slot) + 1;
  uint32_t* at = &head_of(entries_[link - 1].key);
  while (*at != link) {
    OC_CHECK(*at != kNone);
    at = &chain_[*at - 1];
  }
  *at = chain_[link - 1];
  free_.push(entries_, slot);
}

bool Miniature::is_valid() const {
  return policy_->is_valid() && resident_.is_valid(entries_) && leaving_.is_valid(entries_) &&
         free_.is_valid(entries_) && policy_->resident_count() == resident_.size() &&
         policy_->leaving_count() == leaving_.size() && used_once_ <= entries_.count() &&
         count() + free_.size() == used_once_;
}

uint64_t Miniature::metadata_bytes() const {
  return policy_->metadata_bytes() + entries_.touched() + heads_.touched() + chain_.touched();
}

}  // namespace outcore::policy
