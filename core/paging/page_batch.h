// PageBatch: pages that are filled together. Pages begun (Filling, with a frame) are gathered in
// runs; when the buffers are used up, or at the end, all runs are read in one batch and installed.
//
// The fault path; one thread. While it has pages it holds buffers: whoever waits calls finish()
// first.
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
  // Larger pages, and those that the view shows in part, are filled one by one.
  static bool can_take(const Pager& pager, const PageCache& cache, const region::View& view,
                       uint64_t page) {
    if (cache.page_bytes > pager.bounce.shape().chunk_bytes) return false;
    return !cache.frames->can_share() || view.piece_of(page).size_bytes == cache.page_bytes;
  }

  // `run_bytes`: how long runs may become. `frames`: room for the frames of the pages that are
  // gathered; the caller's, who may have little stack.
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

  // REQUIRES: the page is Filling and ours, with this frame; is_written only of system pages.
  void add(uint64_t page, uint32_t frame, bool is_written = false);
  void finish();

 private:
  static constexpr uint32_t kRunsMax = 8;

  // Run: pages, equally spaced, that travel through one buffer.
  struct Run {
    uint64_t first = 0;
    uint64_t stride = 1;
    uint32_t pages = 0;
    uint32_t first_frame = 0;  // index of its first page's frame
    bool is_written = false;   // filled for writes
    std::span<std::byte> buffer;
    int result = 0;
  };

  bool extends(uint64_t page, bool is_written);
  bool open_run(uint64_t page, bool is_written);
  uint64_t span_bytes(const Run& run) const {
    return ((run.pages - 1) * run.stride + 1) * cache_.page_bytes;
  }
  void read_all();
  void install(Run& run);
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
};

}  // namespace outcore::paging
