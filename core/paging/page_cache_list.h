// PageCacheList: the caches of a runtime: how one is added and removed, with all its pages.
//
// Calls of the program.
#pragma once

#include <memory>
#include <utility>

#include "core/paging/pager.h"
#include "core/store/room.h"
#include "outcore/result.h"

namespace outcore::paging {

class PageCacheList {
 public:
  // The room is for stores that can use one.
  PageCacheList(Pager& pager, std::shared_ptr<store::Room> room)
      : pager_(pager), room_(std::move(room)) {}

  // Errors: EINVAL (the budget is too small for its pages, with the least that would do), ENOMEM.
  // EINVAL: the budget is too small for such pages.
  Status check_page_bytes(const std::string& uri, uint64_t page_bytes) const;
  Status add(PageCache* cache);
  // Frees every frame, dirty or not, pinned or not. REQUIRES: nobody faults on the cache any more.
  void drop_frames(PageCache& cache);
  // REQUIRES: no frame and no view of it is left.
  void remove(PageCache* cache);

 private:
  Pager& pager_;
  const std::shared_ptr<store::Room> room_;
};

}  // namespace outcore::paging
