#include "core/policy/ghost_table.h"

#include <algorithm>
#include <cstring>

#include "core/base/assert.h"

namespace outcore::policy {

Status GhostTable::allocate(uint64_t history_max) {
  OC_CHECK(words_.count() == 0);
  history_max_ = history_max;
  return words_.allocate(buckets_for(history_max) * kBucketWords);
}

void GhostTable::set_history(uint64_t history) {
  OC_CHECK(history <= history_max_);
  if (history == history_ && buckets_ != 0) return;
  if (buckets_ != 0) std::memset(&words_[0], 0, buckets_ * kBucketWords * sizeof(uint32_t));
  history_ = history;
  buckets_ = buckets_for(history);
  OC_CHECK(buckets_ * kBucketWords <= words_.count());
  additions_a_tick_ = history / kTicksMax + 1;
  added_ = sweep_ = 0;
}

uint32_t GhostTable::fingerprint_of(PageKey key) {
  const auto fingerprint = static_cast<uint32_t>(key & 0xFFFF);
  return fingerprint == 0 ? 1 : fingerprint;
}

uint32_t* GhostTable::bucket_of(PageKey key) {
  const uint64_t bucket = (key >> 32) * buckets_ >> 32;
  OC_CHECK(bucket < buckets_);
  return &words_[bucket * kBucketWords];
}

uint32_t GhostTable::age_of(uint32_t word) const {
  OC_ASSERT(word != 0);
  const auto now = static_cast<uint32_t>(added_ / additions_a_tick_);
  return (now - (word >> 16)) & 0xFFFF;
}

bool GhostTable::is_live(uint32_t word) const {
  return word != 0 && age_of(word) <= history_ / additions_a_tick_;
}

// Each bucket is swept long before the age of an expired word wraps and makes the word look young.
void GhostTable::sweep_one_bucket() {
  OC_CHECK(sweep_ < buckets_);
  uint32_t* bucket = &words_[sweep_ * kBucketWords];
  for (uint32_t i = 0; i < kBucketWords; ++i)
    if (bucket[i] != 0 && !is_live(bucket[i])) bucket[i] = 0;
  if (++sweep_ == buckets_) sweep_ = 0;
}

void GhostTable::add(PageKey key) {
  if (history_ == 0) return;
  uint32_t* bucket = bucket_of(key);
  const uint32_t fingerprint = fingerprint_of(key);
  const auto now = static_cast<uint32_t>(added_ / additions_a_tick_);
  uint32_t* place = bucket;
  for (uint32_t i = 0; i < kBucketWords; ++i) {
    if (bucket[i] != 0 && (bucket[i] & 0xFFFF) == fingerprint) {
      place = &bucket[i];
      break;
    }
    if (*place == 0) continue;
    if (bucket[i] == 0 || age_of(bucket[i]) > age_of(*place)) place = &bucket[i];
  }
  OC_ASSERT(place >= bucket);
  OC_ASSERT(place < bucket + kBucketWords);
  *place = fingerprint | now << 16;
  ++added_;
  sweep_one_bucket();
}

bool GhostTable::remove(PageKey key, uint64_t* age) {
  if (history_ == 0) return false;
  uint32_t* bucket = bucket_of(key);
  for (uint32_t i = 0; i < kBucketWords; ++i) {
    if ((bucket[i] & 0xFFFF) != fingerprint_of(key) || !is_live(bucket[i])) continue;
    if (age != nullptr) *age = age_of(bucket[i]) * additions_a_tick_;
    bucket[i] = 0;
    return true;
  }
  return false;
}

bool GhostTable::is_valid() const {
  if (history_ > history_max_ || sweep_ >= std::max<uint64_t>(buckets_, 1)) return false;
  // `buckets_` additions are made between two sweeps of a bucket.
  const uint64_t age_max = history_ / additions_a_tick_ + buckets_ / additions_a_tick_ + 2;
  if (age_max > 0xFFFF) return false;
  for (uint64_t i = 0; i < buckets_ * kBucketWords; ++i) {
    const uint32_t word = words_[i];
    if (word != 0 && ((word & 0xFFFF) == 0 || age_of(word) > age_max)) return false;
  }
  return true;
}

}  // namespace outcore::policy
