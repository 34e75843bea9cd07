// StreamLengths: how long the streams of one cache are, so that readahead ends where they end. Any
// thread; the fault path: no lock, a count may be lost where two threads meet.
//
// Programs read in pieces: an object of a repository, an expert of a language model, a row of a
// matrix. A window that doubles brings in as many pages behind the end of a piece as the piece has,
// and the pages that these push out cost as much again. Hur and Lin ("Memory Prefetching Using
// Adaptive Stream Detection", MICRO 2006) keep a histogram of the lengths of streams, and prefetch
// only as far as most streams of the present length go. This class does the same, but not by the
// length at which a stream ended, because a pager cannot see that. At each boundary where a window
// is due, it notes whether the reader comes as far as the middle of that window (the tripwire is
// missed, whether or not the window was brought in). So the counts are without bias, and a wall
// disappears when pieces become longer.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "core/base/assert.h"
#include "core/prefetch/fetch_cost.h"
#include "core/prefetch/use_count.h"

namespace outcore::prefetch {

class StreamLengths {
 public:
  // Two steps for each doubling of the length, because pieces begin and end a few pages beside
  // windows.
  static constexpr uint32_t kSteps = 40;

  // The step of a boundary that lies `pages` (with the stream's stride) behind its beginning.
  static uint32_t step_of(uint32_t pages) {
    const uint32_t octave = pages == 0 ? 0 : static_cast<uint32_t>(std::bit_width(pages)) - 1;
    const uint32_t upper = octave == 0 ? 0 : pages >> (octave - 1) & 1;
    return std::min(2 * octave + upper, kSteps - 1);
  }

  // A window is due at a boundary of this step; the reader has come to the middle of that window;
  // or it cannot be observed whether it does.
  void watch(uint32_t step) { count_of(step).watch(kWatchedMax); }
  void cross(uint32_t step) { count_of(step).use(); }
  void forget(uint32_t step) { count_of(step).unwatch(); }

  // Whether a window of so many pages saves more, by the misses of those readers that go on, than
  // it costs by the pages for those that do not.
  bool pays(uint32_t step, uint32_t window, const FetchCost& cost) const {
    OC_CHECK(step < kSteps);
    OC_ASSERT(window != 0);
    const double goes_on = steps_[step].share(1.0);
    return goes_on * kMissesSaved * static_cast<double>(cost.miss_ns()) >=
           (1 - goes_on) * window * static_cast<double>(cost.page_ns());
  }

 private:
  static constexpr double kMissesSaved = 3;    // a reader that goes on past a wall restarts small
  static constexpr uint32_t kWatchedMax = 64;  // streams are fewer than pages
  UseCount& count_of(uint32_t step) {
    OC_CHECK(step < kSteps);
    return steps_[step];
  }

  std::array<UseCount, kSteps> steps_;
};

}  // namespace outcore::prefetch
