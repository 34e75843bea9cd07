// ViewList: the views of a cache: how one is added, and how it goes while others look at it.
//
// Calls of the program.
#pragma once

#include <cstdint>

#include "core/paging/pager.h"
#include "core/region/view.h"
#include "outcore/result.h"

namespace outcore::paging {

class ViewList {
 public:
  explicit ViewList(Pager& pager) : pager_(pager) {}

  // Attaches frames; the view is in the address map afterwards.
  Status add(PageCache& cache, region::View* view);
  // Detaches. REQUIRES: flushed, and out of the address map.
  void remove(region::View* view);

  // Into the list alone, for a view that takes another's place. Errors: ENOMEM (there are as many
  // as can be).
  Status insert(PageCache& cache, region::View* view);
  // Out of the list. Afterwards nobody who evicts or writes back looks at it. With signals blocked.
  void forget(PageCache& cache, region::View* view);
  // A page may be Busy or written back through some view, and that thread looks at all that show
  // it: those holds are short. Afterwards whoever looks at views of these pages, but for who has a
  // turn, has begun after the call did.
  void wait_for_lookers(const PageCache& cache, uint64_t first, uint64_t end);

 private:
  Pager& pager_;
};

}  // namespace outcore::paging
