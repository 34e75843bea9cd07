#include "core/paging/readahead.h"

#include <unistd.h>

#include <algorithm>

#include "core/base/assert.h"
#include "core/paging/absent_pages.h"

namespace outcore::paging {

using metrics::Counter;
using region::PageState;
using region::View;

namespace {

constinit thread_local uint32_t thread_number = 0;

// What was brought in ahead and is not read yet may fill a third of the memory, of all streams
// together: half of it, and STREAM's kernels in 4 threads read a third of their pages twice.
constexpr uint64_t kAheadShare = 3;

}  // namespace

// Whether pages leave, or soon will, for those that come in. Of a buffer that is not asked at each
// miss: what comes in costs a little too much while there is room.
bool Readahead::is_full(const PageCache& cache) const {
  if (cache.shared != nullptr) return true;
  return pager_.budget.used() + pager_.budget.limit() / 16 > pager_.watermarks().low;
}

prefetch::StreamTable::Advice Readahead::ask_streams(const PageCache& cache,
                                                     prefetch::StreamTable::Miss& miss) {
  if (thread_number == 0) thread_number = static_cast<uint32_t>(::gettid());
  prefetch::TablePool::Mine mine(tables_, thread_number);
  if (!mine) return {};
  prefetch::StreamTable& streams = mine.table();
  miss.readers = pager_.readers.note(&mine.round());
  miss.gain = pager_.tuner.gain_ahead(cache.fetches.cost, is_full(cache));
  const uint64_t stream_count = uint64_t{std::max(streams.count(), 1u)} * miss.readers;
  const uint64_t limit =
      cache.shared != nullptr ? cache.shared->buffer().room().limit_bytes() : pager_.budget.limit();
  const uint64_t window_bytes =
      std::min({pager_.options.readahead_bytes, limit / 8, limit / kAheadShare / stream_count});
  miss.window_max = static_cast<uint32_t>(window_bytes / cache.page_bytes);
  if (miss.window_max < 2) return {};
  // Where readers are faster than the prefetch threads, a hint that has to wait long would bring
  // in what was read, and evicted, in the meantime: then only what this thread fills itself.
  const uint64_t hints = queue_.hints_waiting();
  miss.has_hints = hints != 0;
  if (hints >= kHintsMax) miss.window_max = std::min(miss.window_max, std::max(miss.along_max, 1u));
  return streams.on_miss(miss);
}

void Readahead::on_cluster(const PageCache& cache, uint64_t first, uint64_t end) {
  OC_CHECK(first < end);
  if (end - first < 2 || thread_number == 0) return;
  prefetch::TablePool::Mine mine(tables_, thread_number);
  if (mine) mine.table().on_cluster(cache.id, first, end);
}

// Another thread is filling the page, perhaps for this one, and perhaps a cluster around it.
void Readahead::note_in_flight(const PageCache& cache, const View& view, uint64_t page) {
  const auto is_filling = [&](uint64_t p) {
    return cache.words[p].glance() == PageState::kFilling;
  };
  uint64_t first = page, end = page + 1;
  while (page - first < kClusterMax && first > view.first_page() && is_filling(first - 1)) --first;
  while (end - page < kClusterMax && end < view.end_page() && is_filling(end)) ++end;
  on_cluster(cache, first, end);
}

uint32_t Readahead::read_ahead(PageCache& cache, View& view, uint64_t page, bool is_in_flight,
                               int64_t* stride) {
  const Advice advice = view.advice.load(std::memory_order_relaxed);
  if (pager_.options.readahead_bytes == 0 || advice == Advice::kRandom) return 0;
  // There are a few large buffers: who would have to wait for one reads its page alone.
  const budget::BouncePool& bounce = cache.shared != nullptr ? shared_.bounce() : pager_.bounce;
  const uint64_t along_bytes =
      bounce.has_chunk() ? std::min(kAlongBytesMax, bounce.shape().chunk_bytes) : 0;
  prefetch::StreamTable::Miss miss;
  miss.cache_id = cache.id;
  miss.page = page;
  miss.page_end = view.end_page();
  miss.along_max = static_cast<uint32_t>(std::max(along_bytes / cache.page_bytes, uint64_t{1}) - 1);
  miss.is_sequential = advice == Advice::kSequential;
  miss.is_in_flight = is_in_flight;
  miss.lengths = &cache.stream_lengths, miss.cost = &cache.fetches.cost;
  const AbsentPages absent(cache, view);
  miss.absent = absent.pages();
  const prefetch::StreamTable::Advice ahead = ask_streams(cache, miss);
  if (is_in_flight) note_in_flight(cache, view, page);
  OC_CHECK(ahead.along <= miss.along_max);
  const bool is_neighbourly = ahead.stride == 1 || ahead.stride == -1;
  const uint32_t along = is_neighbourly ? ahead.along + 1 : 0;
  *stride = ahead.stride;
  for (uint32_t i = 0; i < ahead.run_count; ++i) {
    prefetch::PageRun run = ahead.run[i];
    if (along > 1 && run.first_page == page + static_cast<uint64_t>(ahead.stride)) {
      const uint32_t ours = std::min(run.count, along - 1);  // this thread's own share
      run.first_page += static_cast<uint64_t>(ahead.stride * ours);
      run.count -= ours;
    }
    if (run.count == 0) continue;
    if (queue_.hints_waiting() < kHintsMax)
      prefetcher_.prefetch(view, run.first_page, run.stride, run.count, true);
    else
      cache.counters.add(Counter::prefetch_dropped, run.count);
  }
  return along;
}

}  // namespace outcore::paging
