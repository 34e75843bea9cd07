// Filler: brings one page into memory: allocates a frame, reads the store, installs the bytes in a
// view.
//
// The fault path; any thread that made the page Filling. Whoever fills several pages in one
// transfer (PageBatch, FreshPages) uses begin(), finish() and undo() for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/os/address_space.h"
#include "core/os/wait.h"
#include "core/paging/frame_supply.h"
#include "core/paging/pager.h"

namespace outcore::paging {

class Filler {
 public:
  Filler(Pager& pager, FrameSupply& supply) : pager_(pager), supply_(supply) {}
  // Once, before anything else.
  Status allocate() { return spare_.allocate(2 * base::kSystemPage); }

  // 0: the page is resident, and shown in the view. -errno: it is absent again, or Failed.
  // REQUIRES, here and below: this thread made the page Filling.
  int fill(PageCache& cache, region::View& view, uint64_t page, bool is_write, Caller caller);

  // Before a page is shown that can be written: who looks for pages by their frames finds it from
  // now on.
  void begin(const PageCache& cache, uint64_t page, uint32_t frame);
  // The page is there, or its fill failed. The shard's inbox has it first. A guess is a page that
  // no thread asked for, and there is no evidence that one will.
  void finish(PageCache& cache, uint64_t page, uint32_t frame, int result, region::PageValue flags,
              bool is_guess = false);
  // A fill failed in the middle: what there is of the page goes. If it was installed it was seen,
  // and where writes do not fault it may have been written: that goes to the store. `piece` is what
  // its view shows.
  void undo(PageCache& cache, const os::Piece& piece, uint64_t page, bool was_seen);

 private:
  bool may_zero(PageCache& cache, const region::View& view);
  int read_page(PageCache& cache, region::View& view, uint64_t page, uint32_t frame, bool is_write);
  int fill_zeros(PageCache& cache, region::View& view, uint64_t page, uint32_t frame,
                 bool is_written);
  int read_store(PageCache& cache, uint64_t offset, std::span<std::byte> into);
  void show_new(PageCache& cache, region::View& view, uint64_t page);
  void save_written(PageCache& cache, const os::Piece& piece);

  Pager& pager_;
  FrameSupply& supply_;
  os::Lock spare_lock_;
  os::Table<std::byte> spare_;  // two system pages, for what must be saved when an install fails
};

}  // namespace outcore::paging
