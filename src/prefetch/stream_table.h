// StreamTable: the streams in which one thread reads, and what to bring in ahead of it. The fault
// path, by the faulting thread alone: no allocation, no locks, all zeros at first (it lies
// in a TablePool), a few hundred comparisons at most.
//
// What it sees are misses, never hits. So:
// - Detection, as hardware prefetchers do: the last 64 misses that belong to no stream are kept. A
// miss that ends a
//   row of equally spaced ones, three for neighbouring pages, four for longer strides (up to 1024
//   pages, either way), starts a stream. Several streams may be interleaved; the one unused for
//   longest makes room for another, and one that was unused for 64 misses and 32 windows is over.
// - Ramp, as Linux's readahead: the window is 4 pages at first and doubles whenever the reader
// arrives at its end, up
//   to the caller's limit.
// - Tripwire, Linux's marker page (PG_readahead) for a pager that sees no hits: from 8 pages on,
// the middle page of a
//   window is left out. The miss there tells that the reader has come so far, and the next window
//   is issued while half of this one is still ahead.
// - Waste: misses on pages that were issued, are not tripwires and are not being filled mean that
// the pages were
//   dropped, or evicted before use. More than a quarter of a window of them, or two of a small one:
//   it halves. Below the first window the stream is forgotten, and nothing is detected for the next
//   8 misses, 16 if that was in vain, up to 256: where memory is too small for readahead, it costs
//   next to nothing. A reader that is only faster than the prefetcher is not waste: that is what
//   `is_in_flight` tells.
// Random misses are almost never equally spaced: 1 million of them in 2^20 pages cause a handful of
// windows.
#pragma once

#include <cstdint>

namespace outcore::prefetch {

struct PageRun {
  uint64_t first_page;
  int64_t stride;
  uint32_t count;
};

class StreamTable {
 public:
  static constexpr uint32_t kStreams = 24;
  static constexpr uint32_t kHistory = 64;
  static constexpr int64_t kStrideMax = 1024;
  static constexpr uint32_t kFirstWindow = 4;
  static constexpr uint32_t kTripwireWindow = 8;  // windows below have none
  static constexpr uint32_t kRest = 8;  // misses without detection after a stream was given up …
  static constexpr uint32_t kFailuresMax = 5;  // … doubled so often at most
  static constexpr uint32_t kLately = 64;  // and 32 windows: misses without its own, and it is over
  static constexpr uint64_t kPagesMax = uint64_t{1} << 40;

  // At most two runs: before and after a tripwire. None: nothing to bring in.
  struct Advice {
    PageRun run[2];
    uint32_t run_count;
    int64_t stride;   // of the stream that the miss belongs to; 0: none
    uint32_t issued;  // pages of it that are issued, now or before, and lie ahead of the miss
  };

  // The thread missed `page` of `space_id`. window_pages_max: the largest window; 0: no advice.
  // page_end: runs stay below it. is_sequential: the reader promises to go forward: the first miss
  // starts a stream at the largest window. is_in_flight: the page is being filled already, or hints
  // wait in the prefetcher's queue.
  Advice on_miss(uint64_t space_id, uint64_t page, uint32_t window_pages_max, uint64_t page_end,
                 bool is_sequential, bool is_in_flight);

  // Streams that are not over.
  uint32_t count() const;

  bool is_valid() const;

 private:
  // Pages from `last` to `end`, `stride` apart, were issued, but for the tripwire. tripwire == end:
  // it has none.
  struct Stream {
    uint64_t space_id;
    int64_t last;  // the newest miss: here the reader is
    int64_t end;   // the first page not yet issued
    int64_t tripwire;
    int64_t stride;   // 0: the stream is free
    uint32_t window;  // pages
    uint32_t wasted;  // issued pages of this window that were missed
    uint32_t used;    // clock_ at the last miss
  };
  enum class Match : uint8_t { kNone, kBeyond, kInside, kArrived };

  bool is_stale(const Stream& stream) const;
  static Match match(const Stream& stream, uint64_t space_id, int64_t page);
  int64_t detect(uint64_t space_id, int64_t page, bool is_sequential) const;
  bool has_missed(uint64_t space_id, int64_t page) const;
  Stream& start(uint64_t space_id, int64_t page, int64_t stride);
  bool follow(Stream& stream, Match how, int64_t page, uint32_t window_max, bool is_in_flight);
  void give_up(Stream& stream);
  static Advice issue(Stream& stream, uint64_t page_end);
  static Advice place_in(const Stream& stream, Advice advice);
  void remember(uint64_t space_id, int64_t page);

  Stream stream_[kStreams];
  uint64_t missed_[kHistory];  // space and page in one word, 0: none; a ring
  uint32_t missed_next_;
  uint32_t clock_;
  uint32_t resting_;   // misses left without detection
  uint32_t failures_;  // streams given up since one arrived
};
static_assert(sizeof(StreamTable) <= 2048, "every thread that faults has one");

}  // namespace outcore::prefetch
