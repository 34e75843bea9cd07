// Freeze: keeps all pages of a cache out of memory while it exists, for changes that concern all of
// them.
#pragma once

#include "core/os/wait.h"
#include "core/paging/page_cache.h"

namespace outcore::paging {

// While it lives no page of the cache is filled: fills wait in their handlers.
class Freeze {
 public:
  explicit Freeze(PageCache& cache) : cache_(cache) {
    cache_.is_frozen.store(true, std::memory_order_seq_cst);
  }
  ~Freeze() {
    if (!cache_.is_handed_to_kernel.load())
      cache_.is_frozen.store(false, std::memory_order_seq_cst);
  }
  Freeze(const Freeze&) = delete;
  Freeze& operator=(const Freeze&) = delete;

 private:
  const os::SignalBlock block_;
  PageCache& cache_;
};

}  // namespace outcore::paging
