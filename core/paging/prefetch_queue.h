// PrefetchQueue: the requests to prefetch threads: hints of readers, demands of faulting threads
// whose store must not be called inside a signal handler, and changes of frames. Bounded: a hint
// that finds it full is dropped, a demand waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "core/base/assert.h"
#include "core/os/wait.h"
#include "core/region/address_map.h"
#include "core/region/view.h"

namespace outcore::paging {

enum class PrefetchTask : uint8_t { kHint, kDemand, kShareFrames };

struct PrefetchRequest {
  region::View* view = nullptr;  // held (View::users) while it is queued
  uint64_t first = 0;            // pages of the cache
  int64_t stride = 1;
  uint64_t count = 0;
  PrefetchTask task = PrefetchTask::kHint;
  bool is_write = false;
  uint64_t until_ns = 0;      // a demand: after this time no thread waits for it
  uint64_t site = 0;          // a demand: where in the code the touch was
  bool is_readahead = false;  // a hint of readahead: one page that the tuner watches is left out
  bool is_guess = false;      // a hint without evidence: nothing is evicted for it

  // A hint of the program for one page, as lists of pages are.
  bool is_single() const {
    return task == PrefetchTask::kHint && count == 1 && !is_readahead && !is_guess;
  }
};

class PrefetchQueue {
 public:
  static constexpr uint32_t kRequestsMax = 1024;

  // False if full. The fault path: the lock is held for a few instructions, with signals blocked.
  bool push(const PrefetchRequest& request) {
    OC_CHECK(request.view != nullptr);
    OC_CHECK(request.count != 0 || request.task == PrefetchTask::kShareFrames);
    OC_ASSERT(request.view->users.load(std::memory_order_relaxed) > 0);
    OC_ASSERT(request.stride != 0);
    {
      const os::Locked locked(lock_);
      Ring& ring = request.task == PrefetchTask::kHint ? hints_ : demands_;
      OC_CHECK(ring.begin <= ring.end);
      OC_CHECK(ring.end - ring.begin <= kRequestsMax);
      if (ring.end - ring.begin == kRequestsMax) return false;
      ring.request[ring.end++ % kRequestsMax] = request;
      hints_waiting_.store(hints_.end - hints_.begin, std::memory_order_relaxed);
    }
    changes_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) os::wake(&changes_, 1);
    return true;
  }

  // Demands first. REQUIRES: signals are blocked.
  bool pop(PrefetchRequest* request) {
    const os::Locked locked(lock_);
    Ring& ring = demands_.begin != demands_.end ? demands_ : hints_;
    if (ring.begin == ring.end) return false;
    OC_CHECK(ring.end - ring.begin <= kRequestsMax);
    *request = ring.request[ring.begin++ % kRequestsMax];
    OC_CHECK(request->view != nullptr);
    hints_waiting_.store(hints_.end - hints_.begin, std::memory_order_relaxed);
    return true;
  }

  // Pops the hints behind `request` as long as they are single pages of the same view, too: each
  // page of a list is a hint. Returns their number. REQUIRES: request.is_single(); signals are
  // blocked.
  uint32_t pop_alike(const PrefetchRequest& request, std::span<PrefetchRequest> more) {
    OC_CHECK(request.is_single());
    uint32_t popped = 0;
    const os::Locked locked(lock_);
    while (popped < more.size() && hints_.begin != hints_.end) {
      const PrefetchRequest& next = hints_.request[hints_.begin % kRequestsMax];
      if (next.view != request.view || !next.is_single()) break;
      more[popped++] = next;
      ++hints_.begin;
    }
    OC_CHECK(hints_.begin <= hints_.end);
    hints_waiting_.store(hints_.end - hints_.begin, std::memory_order_relaxed);
    return popped;
  }

  // Drops all requests for the view, except demands, for which threads wait: so the view can be
  // removed without waiting for the queue. REQUIRES: signals are blocked.
  void forget(region::View& view) {
    const os::Locked locked(lock_);
    for (Ring* ring : {&demands_, &hints_}) {
      uint64_t kept = ring->begin;
      for (uint64_t i = ring->begin; i != ring->end; ++i) {
        const PrefetchRequest request = ring->request[i % kRequestsMax];
        if (request.view == &view && request.task != PrefetchTask::kDemand)
          region::AddressMap::release(&view);
        else
          ring->request[kept++ % kRequestsMax] = request;
      }
      OC_CHECK(kept <= ring->end);
      ring->end = kept;
    }
    hints_waiting_.store(hints_.end - hints_.begin, std::memory_order_relaxed);
  }

  // Whether there are any: then an absent page may be on its way. The fault path; no lock, may be
  // out of date.
  uint64_t hints_waiting() const { return hints_waiting_.load(std::memory_order_relaxed); }

  uint32_t changes() const { return changes_.load(std::memory_order_seq_cst); }
  void wait_for_change(uint32_t seen) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (changes() == seen) os::wait(&changes_, seen, 1'000'000'000);
    const uint32_t before = sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    OC_CHECK(before > 0);
  }
  void wake_everybody() {
    changes_.fetch_add(1, std::memory_order_seq_cst);
    os::wake_all(&changes_);
  }

 private:
  struct Ring {
    PrefetchRequest request[kRequestsMax];
    uint64_t begin = 0, end = 0;
  };
  os::Lock lock_;
  Ring demands_, hints_;
  std::atomic<uint64_t> hints_waiting_{0};
  std::atomic<uint32_t> changes_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace outcore::paging
