// Readahead: asks the streams of the thread that misses what it will read next, and has that
// prefetched.
//
// The fault path; any thread.
#pragma once

#include <cstdint>

#include "core/paging/pager.h"
#include "core/paging/prefetch_queue.h"
#include "core/paging/prefetcher.h"
#include "core/prefetch/stream_table.h"
#include "core/prefetch/table_pool.h"

namespace outcore::paging {

class Readahead {
 public:
  static constexpr uint64_t kAlongBytesMax = 128 << 10;
  static constexpr uint64_t kHintsMax = 16;  // that may wait when a reader adds to them

  Readahead(Pager& pager, PrefetchQueue& queue, Prefetcher& prefetcher, const SharedFiller& shared)
      : pager_(pager), queue_(queue), prefetcher_(prefetcher), shared_(shared) {}

  // Issues what the thread's streams advise after this miss. Returns how many neighbours of a
  // sequential reader may be filled along with the page, at this touch, and in which direction.
  uint32_t read_ahead(PageCache& cache, region::View& view, uint64_t page, bool is_in_flight,
                      int64_t* stride);
  // A miss of this thread has brought in the pages of [first, end).
  void on_cluster(const PageCache& cache, uint64_t first, uint64_t end);

 private:
  static constexpr uint64_t kClusterMax = uint64_t{1} << prefetch::FetchTuner::kLevelMax;
  bool is_full(const PageCache& cache) const;
  void note_in_flight(const PageCache& cache, const region::View& view, uint64_t page);
  prefetch::StreamTable::Advice ask_streams(const PageCache& cache,
                                            prefetch::StreamTable::Miss& miss);

  Pager& pager_;
  PrefetchQueue& queue_;
  Prefetcher& prefetcher_;
  const SharedFiller& shared_;
  prefetch::TablePool tables_;
};

}  // namespace outcore::paging
