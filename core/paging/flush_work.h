// FlushWork: pages that several threads flush, a buffer's worth at a time, while the program goes
// on.
//
// A page that is being flushed carries kWriting: it is not evicted and not written by anybody else
// meanwhile. Which 4 KiB were written is asked and cleared in one step; a write after that is
// reported again, and written again later.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "core/budget/bounce_pool.h"
#include "core/os/wait.h"
#include "core/paging/flush_buffer.h"
#include "core/paging/page_cache.h"
#include "core/paging/write_stall.h"

namespace outcore::paging {

// What becomes of the rest when nobody reached the store in time.
enum class OnTimeout : uint8_t {
  kStop,  // it stays dirty, unasked: each page would wait
  kGoOn   // it is tried: it goes afterwards, and other servers may take it
};

class FlushWork {
 public:
  // Pages from `first` to `end`, or those of the list.
  FlushWork(PageCache& cache, budget::BouncePool& bounce, WriteStall& stall, uint64_t first,
            uint64_t end, const uint64_t* listed, OnTimeout on_timeout, bool may_have_helpers)
      : cache_(cache),
        bounce_(bounce),
        stall_(stall),
        next_(first),
        end_(end),
        stretch_(std::max<uint64_t>(bounce.shape().chunk_bytes / cache.page_bytes, 1)),
        listed_(listed),
        on_timeout_(on_timeout),
        may_have_helpers_(may_have_helpers) {}

  // Returns when all is stored, or has failed. With signals blocked.
  void run();

  int error() const { return failed_.result; }  // the first
  const StoreRequest& failed() const { return failed_; }
  uint64_t stored_bytes() const { return stored_bytes_; }

 private:
  // While one waits for the store others copy: of the buffers three quarters stay for faults.
  static constexpr uint32_t kHelpersMax = 3;

  void work(bool is_first);
  uint64_t page_at(uint64_t i) const { return listed_ == nullptr ? i : listed_[i]; }
  uint64_t count_absent(uint64_t at, uint64_t end) const;
  uint64_t flush_some(FlushBuffer& buffer, uint64_t at, uint64_t end);
  void start_helpers();

  PageCache& cache_;
  budget::BouncePool& bounce_;
  WriteStall& stall_;
  std::atomic<uint64_t> next_;
  const uint64_t end_, stretch_;
  const uint64_t* const listed_;
  const OnTimeout on_timeout_;
  bool may_have_helpers_;
  std::atomic<bool> is_over_{false};
  std::thread helpers_[kHelpersMax];
  os::Lock lock_;  // of what follows
  StoreRequest failed_{};
  uint64_t stored_bytes_ = 0;
};

}  // namespace outcore::paging
