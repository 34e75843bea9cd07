#include "core/paging/flusher.h"

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/paging/transfer_error.h"

namespace outcore::paging {

using metrics::Counter;

namespace {

// `is_kept`: what could not be stored stays in memory.
Error write_failed(const PageCache& cache, int code, uint64_t offset, uint64_t size_bytes,
                   bool is_kept) {
  return transfer_error(cache, code,
                        "write " + std::to_string(size_bytes) + " bytes at " +
                            std::to_string(offset) + " of " + cache.uri,
                        is_kept ? "the bytes stay in memory while the region is mapped: make "
                                  "room or repair the store, then flush again"
                                : "");
}

Status error_of(const PageCache& cache, const FlushWork& work, bool is_kept = true) {
  if (work.error() == 0) return {};
  const StoreRequest& failed = work.failed();
  return write_failed(cache, work.error(), failed.offset, failed.size_bytes, is_kept);
}

}  // namespace

Status Flusher::flush(PageCache& cache, uint64_t first, uint64_t end, OnTimeout on_timeout) {
  OC_CHECK(first <= end);
  OC_ASSERT(end <= cache.page_count());
  cache.counters.add(Counter::flushes, 1);
  if (!cache.is_writable) return {};
  FlushWork work(cache, pager_.bounce, pager_.stall, first, end, nullptr, on_timeout,
                 pager_.options.has_threads);
  work.run();
  if (work.error() != 0) {
    cache.write_failures.note_reported();
    return error_of(cache, work, on_timeout == OnTimeout::kStop);
  }
  // Who takes the region away asks what is lost: nothing but what was gone before.
  const WriteFailures::Unreported earlier =
      on_timeout == OnTimeout::kGoOn
          ? cache.write_failures.pop_lost()
          : cache.write_failures.note_stored(first * cache.page_bytes, end * cache.page_bytes);
  if (earlier.code == 0) return {};
  return write_failed(cache, earlier.code, earlier.offset, earlier.size_bytes, !earlier.is_lost);
}

Status Flusher::flush_listed(PageCache& cache, std::span<const uint64_t> pages,
                             uint64_t* stored_bytes) {
  FlushWork work(cache, pager_.bounce, pager_.stall, 0, pages.size(), pages.data(),
                 OnTimeout::kStop, pager_.options.has_threads);
  work.run();
  *stored_bytes += work.stored_bytes();
  return error_of(cache, work);
}

Status Flusher::flush_aside(PageCache& cache, uint64_t first, uint64_t end) {
  OC_CHECK(first <= end);
  OC_ASSERT(end <= cache.page_count());
  FlushWork work(cache, pager_.bounce, pager_.stall, first, end, nullptr, OnTimeout::kStop,
                 pager_.options.has_threads);
  work.run();
  return error_of(cache, work);
}

}  // namespace outcore::paging
