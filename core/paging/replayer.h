// Replayer: brings in ahead what a profile of an earlier run says that a region needs, in the order
// in which that run needed it, in a thread of its own.
//
// These are guesses, so it evicts nothing: it ends when the budget is nearly full. One batch is
// under way at a time, and uses few of the buffers; hints and demands have their own threads, and
// never wait behind it. Views may change and be removed meanwhile: it holds one for a batch at
// most.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/os/wait.h"
#include "core/paging/filler.h"
#include "core/paging/frame_supply.h"
#include "core/paging/page_batch.h"
#include "core/paging/pager.h"
#include "core/prefetch/touches.h"
#include "outcore/result.h"

namespace outcore::paging {

class Replayer {
 public:
  static constexpr size_t kReplaysMax = 64;  // waiting or under way
  // The size of a batch: a touch of one of its pages waits for all of it.
  static constexpr uint64_t kBatchBytesMax = 1 << 20;
  static constexpr uint64_t kKeptShare = 8;  // an eighth of the budget is left free

  Replayer(Pager& pager, FrameSupply& supply, Filler& filler)
      : pager_(pager), supply_(supply), filler_(filler) {}
  Replayer(const Replayer&) = delete;
  Replayer& operator=(const Replayer&) = delete;
  ~Replayer();  // REQUIRES: stop() was called, or nothing was ever started

  // Begins to bring in what the touches say of the bytes [from, to) of the view's store, through
  // the view. Any thread but the fault path, with signals blocked. REQUIRES: the view shows the
  // bytes; prefetch::are_touches. Errors: EAGAIN (no thread could be started, or too many replays
  // wait).
  Status start(const region::View& view, uint64_t from, uint64_t to,
               std::shared_ptr<const std::string> touches);
  // The cache is about to be removed: afterwards nothing here uses it. True: a replay of it was not
  // finished. REQUIRES: it has no view any more.
  bool forget(const PageCache& cache);
  // Ends the thread. REQUIRES: Pager::is_stopping.
  void stop();

  // How many replays are not finished.
  uint32_t count() const { return count_.load(std::memory_order_acquire); }
  struct Totals {
    uint64_t bytes = 0, runs = 0;  // brought in; runs of neighbouring pages
  };
  Totals totals() const { return {bytes_.load(), runs_.load()}; }

 private:
  // Neighbouring pages that travel through one buffer.
  struct Stretch {
    uint64_t first = 0, end = 0;
  };
  struct Batch {
    static constexpr size_t kStretchesMax = 64;
    Stretch stretch[kStretchesMax];
    size_t count = 0;
    uint64_t pages = 0;
  };
  struct Replay {
    Replay(const region::View& view, uint64_t from_byte, uint64_t to_byte,
           std::shared_ptr<const std::string> of);

    const PageCache* const cache;  // to be compared only: the views know whether it is there still
    std::byte* const address;
    const uint64_t offset;  // of the address, in the store
    const uint64_t from, to, page_bytes;
    const std::shared_ptr<const std::string> touches;
    prefetch::TouchReader reader;
    prefetch::TouchRun rest;  // of a run that was begun
    uint64_t last_page = UINT64_MAX;
    bool has_skipped = false;  // some of it was not shown any more
  };

  void run();
  bool run_one();
  void gather(Replay& replay, Batch* batch) const;
  void add_unit(Replay& replay, prefetch::Touch unit, Batch* batch) const;
  bool bring_in(Replay& replay, std::span<const Stretch> stretches);
  bool fill(region::View& view, std::span<const Stretch> stretches, bool are_single);
  bool fill_page(PageBatch& batch, PageCache& cache, region::View& view, uint64_t page,
                 uint64_t* filled);
  bool has_room(const PageCache& cache) const;
  void end(const std::shared_ptr<Replay>& replay);
  void end_all();

  Pager& pager_;
  FrameSupply& supply_;
  Filler& filler_;
  os::Lock lock_;  // of the list, and of the start of the thread
  std::vector<std::shared_ptr<Replay>> replays_;
  // Caches whose replays came to their end, but skipped what was not shown any more: an unmap is
  // faster than what follows it. At most kReplaysMax.
  std::vector<const PageCache*> skipped_;
  std::atomic<const PageCache*> busy_{nullptr};  // whose batch is under way
  std::atomic<uint32_t> count_{0};
  std::atomic<uint32_t> changes_{0};
  std::atomic<uint64_t> bytes_{0}, runs_{0};
  std::thread thread_;
};

}  // namespace outcore::paging
