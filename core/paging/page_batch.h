// PageBatch: pages that are filled together. Pages begun (Filling, with a frame) are gathered in
// runs, which may have gaps; when the buffers are used up, or at the end, all runs are read in one
// batch and installed.
//
// The fault path; one thread. While it has pages it holds buffers: call finish() before waiting for
// anything.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/metrics/counter_block.h"
#include "core/paging/filler.h"
#include "core/paging/frame_supply.h"
#include "core/paging/pager.h"

namespace outcore::paging {

class PageBatch {
 public:
  static constexpr uint32_t kRunPagesMax = 128;  // gaps included
  static constexpr uint32_t kRunsMax = 8;

  // Larger pages, and those that the view shows in part, are filled one by one.
  static bool can_add(const Pager& pager, const PageCache& cache, const region::View& view,
                      uint64_t page) {
    if (cache.page_bytes > pager.bounce.shape().chunk_bytes) return false;
    return !cache.frames->can_share() || view.piece_of(page).size_bytes == cache.page_bytes;
  }

  // `run_bytes`: how long runs may become. `frames`: memory of the caller for the frames of the
  // gathered pages, because the stack may be small.
  PageBatch(Pager& pager, FrameSupply& supply, Filler& filler, PageCache& cache, region::View& view,
            Caller caller, metrics::Counter counter, uint64_t run_bytes, std::span<uint32_t> frames)
      : pager_(pager),
        supply_(supply),
        filler_(filler),
        cache_(cache),
        view_(view),
        caller_(caller),
        counter_(counter),
        run_bytes_(std::max(cache.page_bytes, run_bytes)),
        frame_(frames) {}

  // Adds a page; one that is lower than the last begins a new run. REQUIRES: the page is Filling,
  // was claimed by the caller, and has this frame; is_written only for system pages.
  void add(uint64_t page, uint32_t frame, bool is_written = false);
  void finish();
  // Only this page was asked for; the others come in with it. REQUIRES: is_written only for a
  // system page.
  void set_asked(uint64_t page, bool is_written) {
    OC_CHECK(!is_written || cache_.page_bytes == base::kSystemPage);
    asked_ = page;
    is_asked_written_ = is_written;
  }
  // There is no evidence that the others will be used.
  void set_guessed() { is_guessed_ = true; }

 private:
  // Run: pages that travel through one buffer.
  struct Run {
    uint64_t first = 0;
    uint64_t taken[kRunPagesMax / 64] = {};  // bit i: page first + i belongs to it
    uint32_t span = 0;                       // pages from the first to the last
    uint32_t pages = 0;
    uint32_t first_frame = 0;  // index of its first page's frame
    bool is_written = false;   // filled for writes
    std::span<std::byte> buffer;
    int result = 0;

    bool has(uint32_t i) const { return (taken[i / 64] >> (i % 64) & 1) != 0; }
    void add(uint32_t i) {
      OC_CHECK(i < kRunPagesMax);
      taken[i / 64] |= uint64_t{1} << (i % 64);
      span = i + 1;
      ++pages;
    }
  };

  bool extends(uint64_t page, bool is_written);
  bool open_run(uint64_t page, bool is_written);
  uint64_t span_bytes(const Run& run) const { return run.span * cache_.page_bytes; }
  void read_all();
  bool is_written(const Run& run, uint64_t page) const {
    return run.is_written || (is_asked_written_ && page == asked_);
  }
  void install(Run& run);
  uint32_t install_pages(Run& run, uint32_t at, uint32_t frame);
  void finish_page(uint64_t page, uint32_t frame, int result, const Run& run);

  Pager& pager_;
  FrameSupply& supply_;
  Filler& filler_;
  PageCache& cache_;
  region::View& view_;
  const Caller caller_;
  const metrics::Counter counter_;
  const uint64_t run_bytes_;
  Run run_[kRunsMax];
  uint32_t run_count_ = 0;
  const std::span<uint32_t> frame_;
  uint32_t page_count_ = 0;
  uint64_t asked_ = UINT64_MAX;
  bool is_asked_written_ = false, is_guessed_ = false;
};

}  // namespace outcore::paging
