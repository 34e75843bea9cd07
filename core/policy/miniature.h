// Miniature: a policy with few frames and the pages that it would have in them, to see how often it
// would miss. It has no memory to manage: it is shown touches of a sample of the pages, and has as
// many frames as the sample is part of all pages (Waldspurger et al., "Cache modeling and
// optimization using miniature simulations", USENIX ATC 2017). The holder of the shard's turn;
// allocates only in allocate().
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/os/address_space.h"
#include "core/policy/frame_list.h"
#include "core/policy/probe_queue.h"
#include "outcore/policy.h"

namespace outcore::policy {

class Miniature {
 public:
  enum class Outcome : uint8_t { kHit, kRescue, kMiss };

  // REQUIRES: called once, first. Errors: of make_policy.
  Status allocate(const std::string& policy, uint32_t frames_max);
  // REQUIRES: 0 < frames <= frames_max.
  void set_capacity(uint32_t frames);

  // The page was touched; or it was brought in beside another (`is_guess`). `frame` holds it in
  // real memory. Pages that this one drops for it, or lets leave, are added to `dropped`: a touch
  // of one of them would be a miss or a rescue here, and must be seen.
  Outcome touch(PageKey key, FrameId frame, bool is_guess, ProbeQueue& dropped);

  // Whether a touch would be a hit.
  bool has(PageKey key) {
    const FrameId slot = find(key);
    return slot != kNoFrame && entries_[static_cast<uint32_t>(slot)].queue == Queue::kFirst;
  }

  // The page is gone, which no policy could help; nothing, if it is not there.
  void forget(PageKey key);

  uint32_t capacity() const { return capacity_; }
  bool is_valid() const;  // O(n)
  uint64_t metadata_bytes() const;

 private:
  static constexpr uint32_t kNone = 0;  // links are slot + 1

  uint32_t& head_of(PageKey key) {
    return heads_[static_cast<uint32_t>(key >> 32) & (heads_.count() - 1)];
  }
  FrameId find(PageKey key);
  FrameId add(PageKey key, FrameId frame);
  void evict_one(ProbeQueue& dropped);
  void drop(FrameId slot);
  uint32_t count() const { return resident_.size() + leaving_.size(); }

  std::unique_ptr<Policy> policy_;
  // One for each of its frames (slots): the page's key; in `faults`, the real frame.
  EntryTable entries_;
  os::Table<uint32_t> heads_, chain_;  // from a key to its slot
  FrameList free_{Queue::kSecond}, resident_{Queue::kFirst}, leaving_{Queue::kLeaving};
  uint32_t used_once_ = 0;  // slots from here on are free, and in no list
  uint32_t capacity_ = 0;
};

}  // namespace outcore::policy
