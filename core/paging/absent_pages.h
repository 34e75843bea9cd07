// AbsentPages: which pages seem absent, for one miss. Of a buffer's pages only the kernel knows: it
// is asked for 64 neighbours at once, which takes hardly longer than for one, because a caller that
// looks along a window asks for page after page.
//
// Answers may be out of date: the kernel is not asked twice about a page. One thread; the fault
// path.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/assert.h"
#include "core/os/buffer_frames.h"
#include "core/paging/page_cache.h"
#include "core/prefetch/stream_table.h"
#include "core/region/view.h"

namespace outcore::paging {

class AbsentPages {
 public:
  // REQUIRES: both outlive this; the miss is of a page of the view.
  AbsentPages(const PageCache& cache, const region::View& view) : cache_(cache), view_(view) {}
  AbsentPages(const AbsentPages&) = delete;
  AbsentPages& operator=(const AbsentPages&) = delete;

  bool has(uint64_t page) const {
    if (cache_.shared == nullptr) return cache_.seems_absent(page);
    if (page < first_ || page >= end_) look(page);
    return page < end_ ? (present_[page - first_] & 1) == 0 : cache_.seems_absent(page);
  }
  // For who asks by a function; as long as this lives.
  prefetch::StreamTable::Pages pages() const {
    return {this, [](const void* of, uint64_t page) {
              return static_cast<const AbsentPages*>(of)->has(page);
            }};
  }

 private:
  static constexpr uint64_t kBlock = 64;

  // Leaves nothing known if the view does not show the page, or its neighbours are mapped no more.
  void look(uint64_t page) const {
    first_ = std::max(page - page % kBlock, view_.first_page());
    end_ = std::min(page - page % kBlock + kBlock, view_.end_page());
    if (page >= first_ && page < end_) {
      const os::Piece piece = view_.pieces_of(first_, end_);
      end_ = first_ + piece.size_bytes / cache_.page_bytes;
      OC_ASSERT(end_ - first_ <= kBlock);
      if (page < end_ && os::look_up_presence(piece.address, piece.size_bytes, present_) == 0)
        return;
    }
    first_ = end_ = 0;
  }

  const PageCache& cache_;
  const region::View& view_;
  mutable uint64_t first_ = 0, end_ = 0;  // of which pages it is known
  mutable unsigned char present_[kBlock];
};

}  // namespace outcore::paging
