// SharedFiller: brings in pages of a buffer, for all processes that share it.
//
// Such a page has no state word in this process (PageCache::shared): it is in the buffer's memfd
// with its bytes, or not at all, and the kernel knows which. Several threads of several processes
// may try to bring in the same page: one installs it, and the others find it there, with the same
// bytes.
//
// The fault path; any thread. No allocation, no lock; it touches no managed memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/budget/bounce_pool.h"
#include "core/paging/call_wait.h"
#include "core/paging/pager.h"
#include "core/prefetch/fetch_tuner.h"

namespace outcore::paging {

class SharedFiller {
 public:
  static constexpr uint64_t kNone = prefetch::FetchTuner::kNone;
  static constexpr uint32_t kPagesMax = 1 << prefetch::FetchTuner::kLevelMax;

  explicit SharedFiller(Pager& pager) : pager_(pager) {}

  // Allocates buffers for transfers, outside of the pager's budget: the caller accounts for them.
  // Called once.
  Status allocate(const budget::BouncePool::Shape& shape) { return bounce_.allocate(shape); }
  const budget::BouncePool& bounce() const { return bounce_; }
  budget::BouncePool& bounce() { return bounce_; }

  // How much memory there is for pages of the cache's buffer; may be out of date. All 0 for other
  // caches.
  struct Room {
    uint64_t limit_bytes = 0, used_bytes = 0, resident_bytes = 0;
    uint64_t kept_bytes = 0;  // up to this much can be used before pages are evicted
  };
  Room room(const PageCache& cache) const;
  // The limit of the cache's buffer. REQUIRES: it has one.
  static uint64_t limit_bytes(const PageCache& cache);

  // What is to come in: the page, and the absent pages of [first, end) except `left_out`; at most
  // kPagesMax pages.
  struct Wanted {
    uint64_t page = 0, first = 0, end = 0, left_out = kNone;
    bool is_demanded = true;   // a thread waits for the page; false: none waits for any
    bool is_guess = false;     // no evidence yet that the others will be used
    bool was_absent = false;   // the kernel has just said that the page is absent
    CallWait* wait = nullptr;  // begins if the page is missing
  };
  // 0: the page is in memory, or was a moment ago. -EAGAIN: try again. Otherwise -errno. *filled:
  // how many pages came in. REQUIRES: between SharedFile::enter() and leave().
  int fill(PageCache& cache, const region::View& view, const Wanted& wanted, uint32_t* filled);

  // Waits for memory for `pages` pages, and reserves it until Room::release(). 0; -ENOMEM; -EAGAIN:
  // try again, because a thread that changes views, or hands the file back, waits for this one.
  int wait_for_room(PageCache& cache, uint64_t pages);

  // Keeps the page in memory until unpin(). 0 or -errno. `wait` begins if it is missing.
  // REQUIRES: buffer::Pins::reserve().
  int pin(PageCache& cache, region::View& view, uint64_t page, CallWait* wait);
  void unpin(PageCache& cache, uint64_t page);
  bool is_pinned(const PageCache& cache, uint64_t page) const;

 private:
  // Neighbouring pages that this thread has claimed; bit i: page first + i comes in.
  struct Run {
    uint64_t first = 0, end = 0;
    uint64_t taken[kPagesMax / 64] = {};
    uint32_t count = 0;
    bool is_there = false;  // of one page: another has brought it in meanwhile
    bool has(uint64_t page) const {
      return (taken[(page - first) / 64] >> (page - first) % 64 & 1) != 0;
    }
  };
  int claim(PageCache& cache, const Wanted& wanted);
  Run claim_around(PageCache& cache, const region::View& view, const Wanted& wanted);
  void release_claims(PageCache& cache, const Run& run);
  int acquire_room(PageCache& cache, const Wanted& wanted, Run* run);
  int transfer(PageCache& cache, const region::View& view, Run* run);
  void report(PageCache& cache, const Run& run, const Wanted& wanted);

  Pager& pager_;
  budget::BouncePool bounce_;
  // Pages that were read to be brought in, and pages in the gaps between them that were read, too.
  std::atomic<uint64_t> filled_pages_{0}, gap_pages_{0};
};

}  // namespace outcore::paging
