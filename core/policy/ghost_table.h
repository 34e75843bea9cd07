// GhostTable: remembers which pages were evicted recently: approximately the last `history` keys
// added, first in, first out, by fingerprints. The holder of the shard's turn; allocates only in
// allocate().
//
// It has buckets of 16 words, a cache line each. A word is a 16-bit fingerprint and the 16-bit time
// of its addition. Time counts additions, so a word expires by its age, and no list is needed (Yang
// et al., "FIFO queues are all you need for cache eviction", SOSP 2023, section 4.3). There are two
// words for each key: 8 bytes a page of history, and under 1 % of the keys are pushed out of their
// bucket early. A wrong "yes" happens about once in 8000 questions.
#pragma once

#include <cstdint>

#include "core/os/address_space.h"
#include "outcore/policy.h"

namespace outcore::policy {

class GhostTable {
 public:
  // Allocates for histories of up to history_max keys; memory is used as it is touched. REQUIRES:
  // called once, first. Errors: ENOMEM.
  Status allocate(uint64_t history_max);
  // Sets how many keys are remembered. If that is a change, forgets all keys.
  void set_history(uint64_t history);

  void add(PageKey key);
  // True if the key was added recently; then it is removed, and *age is roughly how many were added
  // since.
  bool remove(PageKey key, uint64_t* age = nullptr);

  uint64_t history() const { return history_; }
  bool is_valid() const;  // O(n)
  uint64_t metadata_bytes() const { return words_.touched(); }

 private:
  static constexpr uint32_t kBucketWords = 16;
  // The length of a history in ticks: half of what 16 bits can distinguish.
  static constexpr uint64_t kTicksMax = 32768;

  static uint64_t buckets_for(uint64_t history) { return history / (kBucketWords / 2) + 1; }
  static uint32_t fingerprint_of(PageKey key);
  uint32_t* bucket_of(PageKey key);
  uint32_t age_of(uint32_t word) const;
  bool is_live(uint32_t word) const;
  void sweep_one_bucket();

  os::Table<uint32_t> words_;  // fingerprint, then time << 16; 0: empty
  uint64_t history_max_ = 0, history_ = 0, buckets_ = 0;
  uint64_t added_ = 0;             // additions so far
  uint64_t additions_a_tick_ = 1;  // so that a history is at most kTicksMax ticks
  uint64_t sweep_ = 0;             // the next bucket from which to remove expired words
};

}  // namespace outcore::policy
