// Eviction: one turn's batch of pages on their way out. Unmap all, ask which 4 KiB were written,
// write those back with neighbours joined, free. A page touched before it is freed is rescued, and
// drops out of the batch.
//
// Used by the thread that holds the shard's turn; at most one a shard. Never waits for a page:
// pinned, filling and busy pages are skipped.
#pragma once

#include <cstdint>

#include "core/base/assert.h"
#include "core/paging/pager.h"
#include "core/paging/victim_batch.h"
#include "core/paging/victim_writer.h"
#include "core/paging/written_victims.h"

namespace outcore::paging {

// Bytes: what to do with bytes that were written.
enum class Bytes : uint8_t {
  kWriteBack,
  kDrop,
  // They are neither stored nor rescued: until free() or put_back_all() a touch waits.
  kBlock,
};

class Eviction {
 public:
  // REQUIRES: shard.turn is held for the life of this.
  Eviction(Pager& pager, Shard& shard, Caller caller)
      : pager_(pager),
        shard_(shard),
        frames_(pager.frames),
        caller_(caller),
        victims_(pager, shard),
        written_(shard),
        writer_(pager, shard, victims_, caller) {
    shard.victim_count = 0;
  }

  // Reports to the policy what happened since the last turn.
  void drain_inbox() { victims_.drain_inbox(); }
  // Adds up to `count` frames that the policy gives up.
  void choose(uint32_t count);
  // Adds up to `count` resident frames, as far as there is room in the batch, that the policy wants
  // to probe. They are unmapped and cleaned with the batch, but stay in memory. Adds none where
  // touches of leaving pages cannot be observed.
  void choose_probes(uint32_t count);
  // Adds the resident, unpinned pages of [first, end) that belong to this shard, as many as fit a
  // batch, and returns where it stopped. Pages that other threads use are skipped and counted in
  // `busy`.
  uint64_t add_range(PageCache& cache, uint64_t first, uint64_t end, uint64_t* busy);
  // The same for one page. REQUIRES: !is_full().
  void add_page(PageCache& cache, uint64_t page, uint64_t* busy);
  bool is_full() const { return shard_.victim_count == Shard::kVictimsMax; }
  // Unmaps the batch, and writes back, drops or blocks what was written.
  void clean(Bytes bytes);
  // After clean(): reports to the tuner how many pages leave, and how many were written back first.
  void note_leaving() const { victims_.note_leaving(); }
  // Frees the pages that are clean and still leaving. Returns how many bytes were freed.
  uint64_t free();
  // After Bytes::kBlock, instead of free(): the batch becomes resident again. `is_stored` is false
  // if its bytes in the store may have changed: then all of it counts as written.
  void put_back_all(bool is_stored);
  // Lets the batch rest: appends it to the shard's leaving frames, and takes the oldest of these
  // that are more than `leaving_target` as the batch.
  void rest(uint32_t leaving_target);

  uint32_t blocked_count() const;  // how many of the batch are still victims
  int first_error() const { return writer_.first_error(); }
  // How many pages were chosen, without those that keepers are to write back.
  uint32_t looked_at() const { return looked_at_; }

 private:
  // Whether its pages are left to the keepers, which may write to a slow store.
  bool leaves_writes_to_keepers(const PageCache& cache) const {
    return caller_ == Caller::kFault &&
           (!cache.traits.is_fault_safe || cache.traits.has_slow_writes);
  }
  bool add_victim(uint32_t frame, bool was_chosen);
  uint32_t pay_for_probes();
  void probe(uint32_t frame);
  void block(Victim& victim);
  void unmap(uint32_t begin, uint32_t end);
  void collect(uint32_t i);
  bool free_alone(const Victim& victim);
  void forget(uint32_t frame);
  // Calls f(begin, end) for every stretch of victims of one cache.
  template <typename F>
  void for_each_cache(const F& f);

  Pager& pager_;
  Shard& shard_;
  budget::FrameTable& frames_;
  const Caller caller_;
  VictimBatch victims_;
  WrittenVictims written_;
  VictimWriter writer_;
  uint32_t looked_at_ = 0;
};

}  // namespace outcore::paging
