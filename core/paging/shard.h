// Shard: a share of the pages, with its policy. Whoever holds its turn is its keeper: a thread of
// ours, or a filler that found no free frame. Nothing here needs another lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/budget/frame_table.h"
#include "core/os/frames.h"
#include "core/os/wait.h"
#include "core/paging/page_cache.h"
#include "core/paging/shard_inbox.h"
#include "outcore/policy.h"
#include "outcore/store.h"

namespace outcore::paging {

// FrameQueue: frames in order, linked through their records. The turn's holder.
class FrameQueue {
 public:
  explicit FrameQueue(uint8_t list) : list_(list) {}
  void push(budget::FrameTable& frames, uint32_t frame);
  void remove(budget::FrameTable& frames, uint32_t frame);
  uint32_t pop(budget::FrameTable& frames);  // the oldest; kNone if empty
  uint32_t size() const { return size_; }

 private:
  const uint8_t list_;
  uint32_t oldest_ = budget::kNone, newest_ = budget::kNone, size_ = 0;
};

inline constexpr uint8_t kLeavingList = 1, kColdList = 2;

// A frame on its way out, during one turn.
struct Victim {
  uint32_t frame = 0;
  PageCache* cache = nullptr;
  uint64_t page = 0;
  int error = 0;
  bool is_dirty = false;
  bool is_out = false;  // no longer a victim: rescued, put back or freed
};

inline region::PageWord& word_of(const Victim& victim) { return victim.cache->words[victim.page]; }

struct Shard {
  static constexpr uint32_t kVictimsMax = 256;
  static constexpr uint32_t kRequestsMax = 256;

  os::Lock turn;
  ShardInbox inbox;
  // The keeper's thread sleeps on it; 1: there is work.
  std::atomic<uint32_t> is_called{0};

  // All below: the turn's holder.
  std::unique_ptr<Policy> policy;
  FrameQueue leaving{kLeavingList};
  FrameQueue cold{kColdList};
  uint64_t capacity_page_bytes = 0;  // for which the policy's capacity was set
  std::byte* write_buffer = nullptr;
  uint64_t write_buffer_bytes = 0;

  // Scratch of a turn: here, because a turn may run on a small signal stack.
  Victim victim[kVictimsMax];
  uint32_t victim_count = 0;
  FrameId chosen[kVictimsMax];
  os::Piece piece[kVictimsMax];
  StoreRequest request[kRequestsMax];
  uint32_t request_first_victim[kRequestsMax];
  uint32_t request_last_victim[kRequestsMax];
  uint32_t request_count = 0;
  uint64_t write_buffer_used = 0;
  os::SubpageSet written;

  ~Shard();
};

}  // namespace outcore::paging
