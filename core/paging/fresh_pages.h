// FreshPages: pages that an allocator hands out: zeros, before their first writes fault one by one.
#pragma once

#include <cstdint>

#include "core/paging/filler.h"
#include "core/paging/frame_supply.h"
#include "core/paging/pager.h"

namespace outcore::paging {

class FreshPages {
 public:
  FreshPages(Pager& pager, FrameSupply& supply, Filler& filler)
      : pager_(pager), supply_(supply), filler_(filler) {}

  // A hint, of the view's pages [first, end), which are about to be written. A call of the program,
  // with signals blocked.
  void prepare(region::View& view, uint64_t first, uint64_t end);

 private:
  uint64_t prepare_run(PageCache& cache, region::View& view, uint64_t first, uint64_t count);

  Pager& pager_;
  FrameSupply& supply_;
  Filler& filler_;
};

}  // namespace outcore::paging
