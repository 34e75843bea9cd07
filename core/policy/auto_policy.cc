#include "core/policy/auto_policy.h"

#include <algorithm>

#include "core/base/assert.h"

namespace outcore::policy {

Status AutoPolicy::allocate(size_t frames_max) {
  for (size_t i = 0; i < kCandidates.size(); ++i) {
    auto policy = make_policy(std::string(kCandidates[i]), frames_max, 0);
    if (!policy) return policy.error();
    policies_[i] = std::move(policy).value();
  }
  if (Status s = owner_.allocate(frames_max); !s) return s;
  return trial_.allocate(kMiniatures, static_cast<uint32_t>(parameters_[0].value));
}

Policy& AutoPolicy::owner_of(FrameId frame) const {
  OC_CHECK(static_cast<uint32_t>(frame) < owner_.count());
  const uint8_t owner = owner_[static_cast<uint32_t>(frame)];
  OC_CHECK(owner != 0);
  OC_CHECK(owner <= kCandidates.size());
  return *policies_[owner - 1];
}

void AutoPolicy::assign_to_live(FrameId frame) {
  const auto i = static_cast<uint32_t>(frame);
  OC_CHECK(i < owner_.count());
  OC_CHECK(owner_[i] == 0);
  owner_[i] = static_cast<uint8_t>(trial_.live() + 1);
  used_once_ = std::max(used_once_, i + 1);
}

void AutoPolicy::note(FrameId frame, PageKey key, Touch touch) {
  assign_to_live(frame);
  if (trial_.is_sampled(key)) trial_.touch(key, frame, touch);
}

void AutoPolicy::filled(FrameId frame, PageKey key) {
  note(frame, key, Touch::kMiss);
  live().filled(frame, key);
}

void AutoPolicy::guessed(FrameId frame, PageKey key) {
  note(frame, key, Touch::kGuess);
  live().guessed(frame, key);
}

// No touch, so that the trial does not take it for one: neither is put_back().
void AutoPolicy::returned(FrameId frame, PageKey key) {
  assign_to_live(frame);
  live().returned(frame, key);
}

void AutoPolicy::put_back(FrameId frame) { owner_of(frame).put_back(frame); }

void AutoPolicy::rescued(FrameId frame) {
  Policy& owner = owner_of(frame);
  owner.rescued(frame);
  const PageKey key = owner.key_of(frame);
  if (trial_.is_sampled(key)) trial_.touch(key, frame, Touch::kRescue);
}

void AutoPolicy::touched(FrameId frame) {
  const PageKey key = key_of(frame);
  probes_touched_.fetch_add(1, std::memory_order_relaxed);
  trial_.note_probe_touched();
  if (trial_.is_sampled(key)) trial_.touch(key, frame, Touch::kOfProbed);
}

void AutoPolicy::freed(FrameId frame) {
  owner_of(frame).freed(frame);
  owner_[static_cast<uint32_t>(frame)] = 0;
}

void AutoPolicy::removed(FrameId frame) {
  owner_of(frame).removed(frame);
  owner_[static_cast<uint32_t>(frame)] = 0;
}

size_t AutoPolicy::choose_victims(std::span<FrameId> out) {
  if (trial_.change()) {
    changes_.fetch_add(1, std::memory_order_relaxed);
    live_now_.store(trial_.live(), std::memory_order_relaxed);
  }
  size_t count = 0;
  for (const auto& policy : policies_)
    if (policy.get() != &live()) count += policy->choose_victims(out.subspan(count));
  count += live().choose_victims(out.subspan(count));
  hand_over();
  return count;
}

void AutoPolicy::hand_over() {
  uint32_t moves = 0;
  for (const auto& policy : policies_) {
    if (policy.get() == &live()) continue;
    FrameId frames[64];
    while (policy->resident_count() != 0 && moves < kMovesMax) {
      const size_t count = policy->choose_victims(frames);
      OC_CHECK(count != 0);
      moves += static_cast<uint32_t>(count);
      for (size_t i = 0; i < count; ++i) {
        const PageKey key = policy->key_of(frames[i]);
        policy->removed(frames[i]);
        owner_[static_cast<uint32_t>(frames[i])] = static_cast<uint8_t>(trial_.live() + 1);
        live().taken_over(frames[i], key);
      }
    }
  }
}

void AutoPolicy::look_anew() {
  if (trial_.must_look_anew()) next_look_ = 0;
  const uint32_t end = std::min(used_once_, next_look_ + kLooksMax);
  for (; next_look_ < end; ++next_look_) {
    if (owner_[next_look_] == 0) continue;
    const FrameId frame{next_look_};
    if (!is_resident(frame)) continue;
    const PageKey key = key_of(frame);
    if (trial_.is_sampled(key) && !trial_.is_known_everywhere(key)) trial_.ask_for({key, frame});
  }
}

size_t AutoPolicy::choose_probes(std::span<FrameId> out, uint32_t price, uint32_t paid) {
  trial_.set_price(price, paid);
  if (!trial_.is_awake()) return 0;
  look_anew();
  size_t count = 0;
  while (count < out.size() && trial_.has_probes()) {
    const ProbeRequest wanted = trial_.next_probe();
    const auto i = static_cast<uint32_t>(wanted.frame);
    OC_CHECK(i < owner_.count());
    if (owner_[i] == 0 || key_of(wanted.frame) != wanted.key) continue;  // gone meanwhile
    // A victim of this turn, or one whose rescue the policy has not been told of: it may be
    // resident by its page's word, and would be in two batches, or twice in the inbox.
    if (!is_resident(wanted.frame)) continue;
    out[count++] = wanted.frame;
  }
  probes_.fetch_add(count, std::memory_order_relaxed);
  trial_.note_probes(count);
  return count;
}

void AutoPolicy::set_capacity(size_t frames) {
  OC_CHECK(frames <= owner_.count());
  for (const auto& policy : policies_) policy->set_capacity(frames);
  trial_.set_capacity(frames);
}

size_t AutoPolicy::resident_count() const {
  size_t count = 0;
  for (const auto& policy : policies_) count += policy->resident_count();
  return count;
}

size_t AutoPolicy::leaving_count() const {
  size_t count = 0;
  for (const auto& policy : policies_) count += policy->leaving_count();
  return count;
}

bool AutoPolicy::is_valid() const {
  for (const auto& policy : policies_)
    if (!policy->is_valid()) return false;
  return trial_.is_valid();
}

size_t AutoPolicy::metadata_bytes() const {
  size_t bytes = owner_.touched() + trial_.metadata_bytes();
  for (const auto& policy : policies_) bytes += policy->metadata_bytes();
  return bytes;
}

PolicyMetrics AutoPolicy::metrics() const {
  PolicyMetrics metrics;
  metrics.policy = kCandidates[live_now_.load(std::memory_order_relaxed)];
  metrics.changes = changes_.load(std::memory_order_relaxed);
  metrics.probes = probes_.load(std::memory_order_relaxed);
  metrics.probes_touched = probes_touched_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < kCandidates.size(); ++i)
    metrics.candidates.push_back({std::string(kCandidates[i]), trial_.cost(i)});
  metrics.cost_of_twice = trial_.cost(trial_.candidates());
  return metrics;
}

}  // namespace outcore::policy
