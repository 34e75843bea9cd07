// Freeze: a space whose pages are out of memory and stay out, for changes that concern all of them.
#pragma once

#include "core/os/wait.h"
#include "core/paging/page_cache.h"

namespace outcore::paging {

// While it lives no page of the space is filled: fills wait in their handlers.
class Freeze {
 public:
  explicit Freeze(PageCache& space) : space_(space) {
    space_.is_frozen.store(true, std::memory_order_seq_cst);
  }
  ~Freeze() {
    if (!space_.is_handed_to_kernel.load())
      space_.is_frozen.store(false, std::memory_order_seq_cst);
  }
  Freeze(const Freeze&) = delete;
  Freeze& operator=(const Freeze&) = delete;

 private:
  const os::SignalBlock block_;
  PageCache& space_;
};

}  // namespace outcore::paging
