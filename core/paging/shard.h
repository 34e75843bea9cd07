// Shard: a share of the pages, with its policy. The thread that holds its turn evicts pages: a
// keeper thread of ours, or a filler that found no free frame. Nothing here needs another lock.
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

// FrameQueue: frames in order, linked through their records. REQUIRES: the turn.
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

inline constexpr uint8_t kLeavingList = 1, kColdList = 2, kProbedList = 3;

// A frame on its way out, during one turn.
struct Victim {
  uint32_t frame = 0;
  PageCache* cache = nullptr;
  uint64_t page = 0;
  int error = 0;
  bool is_dirty = false;
  bool is_out = false;     // no longer a victim: rescued, put back, freed, or left in `leaving`
  bool is_probed = false;  // stays resident: the policy wants to know whether it is touched
};

inline region::PageWord& word_of(const Victim& victim) { return victim.cache->words[victim.page]; }

struct Shard {
  static constexpr uint32_t kVictimsMax = 256;
  static constexpr uint32_t kRequestsMax = 256;

  os::Lock turn;
  ShardInbox inbox;
  // The keeper's thread sleeps on it; 1: there is work.
  std::atomic<uint32_t> is_called{0};

  // Rescues of probed pages wait in the inbox. After kRescuesMax of them the keeper is called,
  // because the policy may want to probe other pages then. Counted only while any page is probed.
  static constexpr uint32_t kRescuesMax = 16;
  std::atomic<uint32_t> rescues{0};
  std::atomic<bool> has_probed{false};
  void note_rescue() {
    if (!has_probed.load(std::memory_order_relaxed)) return;
    if (rescues.fetch_add(1, std::memory_order_relaxed) + 1 >= kRescuesMax) call_keeper();
  }
  void call_keeper() {
    if (is_called.load(std::memory_order_relaxed) == 0 &&
        is_called.exchange(1, std::memory_order_acq_rel) == 0)
      os::wake_all(&is_called);
  }

  // All below REQUIRES the turn.
  std::unique_ptr<Policy> policy;
  std::string_view told_policy;  // the chosen policy as it was published last
  FrameQueue leaving{kLeavingList};
  FrameQueue cold{kColdList};
  FrameQueue probed{kProbedList};     // until the inbox has their rescue
  uint32_t probe_price = 0;           // see Policy::choose_probes; 0: not known yet
  uint64_t probes_paid_ns = 0;        // time up to which probes are paid for; 0: not begun
  uint64_t capacity_page_bytes = 0;   // the page size for which the policy's capacity was set
  std::byte* write_buffer = nullptr;  // the pager's
  uint64_t write_buffer_bytes = 0;

  // Working space of a turn: here, because a turn may run on a small signal stack.
  Victim victim[kVictimsMax];
  uint32_t victim_count = 0;
  FrameId chosen[kVictimsMax];
  os::Piece piece[kVictimsMax];
  StoreRequest request[kRequestsMax];
  uint32_t request_first_victim[kRequestsMax];
  uint32_t request_last_victim[kRequestsMax];
  uint32_t request_count = 0;
  uint64_t write_buffer_used = 0;
  os::SubpageSet written;      // of one victim
  os::SubpageSet written_run;  // of neighbours (WrittenVictims)
};

}  // namespace outcore::paging
