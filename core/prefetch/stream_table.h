// StreamTable: recognises the streams in which one thread reads, and decides what to prefetch.
// Called on the fault path by the faulting thread only: no allocation, no locks, at most a few
// hundred comparisons. A table starts as zeros (it is in a TablePool).
//
// It sees misses, but no hits. So:
// - Detection, as in hardware prefetchers: it keeps the last 64 misses that belong to no stream. A
//   miss that ends a row of equally spaced ones starts a stream: three for neighbouring pages, four
//   for longer strides (up to 1024 pages, in either direction). Several streams may be interleaved.
//   A new stream takes the place of the one unused for longest; a stream unused for 64 misses and
//   32 windows is over.
// - Ramp, as in Linux's readahead: the window is 4 pages at first, and doubles each time the reader
//   arrives at its end, up to the caller's limit.
// - Tripwire, Linux's marker page (PG_readahead) for a pager that sees no hits: windows of 8 pages
//   and more leave out their middle page. The miss there shows that the reader has come so far, and
//   the next window is issued while half of this one is still ahead.
// - Walls: where most streams of a cache have ended before (StreamLengths), no window is issued. A
//   reader that goes on misses the page at the wall, and begins with small windows behind it.
// - Waste: misses on issued pages, other than tripwires and pages that are being filled, mean that
//   pages were dropped, or evicted before use. If they are more than a quarter of a window (or two
//   of a small one), the window halves. Below the first window the stream is forgotten, and nothing
//   is detected for the next 8 misses, then 16 if that was in vain, up to 256: where memory is too
//   small for readahead, it costs almost nothing. Misses on pages that
//   are still being filled (`is_in_flight`) are not waste: the reader is only faster.
// - Credit: prefetching must be earned (StreamCredit).
// Random misses are almost never equally spaced: 1 million of them in 2^20 pages cause a handful of
// windows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/prefetch/stream_credit.h"
#include "core/prefetch/stream_lengths.h"

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
  static constexpr uint32_t kTripwireWindow = 8;  // smaller windows have none
  static constexpr uint32_t kRest = 8;  // misses without detection after a stream was given up …
  static constexpr uint32_t kFailuresMax = 5;  // … doubled at most this often
  // Misses, plus 32 windows, after which an unused stream is over.
  static constexpr uint32_t kLately = 64;
  static constexpr uint32_t kWindowMost = 1 << 14;  // pages
  // Pages looked at for a window: at least this, or four windows.
  static constexpr uint32_t kWalkMin = 64;
  static constexpr uint64_t kPagesMax = uint64_t{1} << 40;

  // At most two runs: before and after a tripwire. No run: nothing to bring in.
  struct Advice {
    PageRun run[2];
    uint32_t run_count;
    int64_t stride;  // of the stream of the miss; 0: none
    uint32_t along;  // how many of the stream's next pages to fill with the miss; all were issued
  };

  // Says which pages of a cache are not in memory. It may change at any time.
  struct Pages {
    const void* of = nullptr;
    bool (*is_absent)(const void* of, uint64_t page) = nullptr;  // nullptr: all are absent
    bool has(int64_t page) const {
      return is_absent == nullptr || is_absent(of, static_cast<uint64_t>(page));
    }
  };
  struct Miss {
    uint64_t cache_id = 0, page = 0;
    uint64_t page_end = 0;    // runs stay below this page
    uint32_t window_max = 0;  // largest window, in pages; 0: no advice
    uint32_t along_max = 0;   // pages that the caller can fill together with the miss
    // The reader has promised to read forward: the first miss starts a stream with the largest
    // window, without credit.
    bool is_sequential = false;
    bool is_in_flight = false;  // the page is already being filled
    uint32_t readers = 1;       // threads that missed pages recently
    // How many useless pages, which push out others, cost as much as one page that is in memory
    // when it is read saves. Counts between StreamCredit's kGainLeast and kGainMost.
    double gain = StreamCredit::kGainMost;
    bool has_hints = false;  // hints are waiting in the queue: a missing page may only be late
    Pages absent{};
    // The lengths of the cache's streams, and what its fills cost; nullptr: there are no walls.
    StreamLengths* lengths = nullptr;
    const FetchCost* cost = nullptr;  // of the same cache: there if `lengths` is
  };
  Advice on_miss(const Miss& miss);
  // After a miss without a stream, the pages of [first, end) came in together. A reader that goes
  // on beyond either end has read along them: its next miss there starts a stream.
  void on_cluster(uint64_t cache_id, uint64_t first, uint64_t end);

  // Streams that are not over.
  uint32_t count() const;

  bool is_valid() const;

 private:
  // Pages from `last` to `end`, `stride` apart, were issued or are in memory, except the tripwire.
  // tripwire == end: there is none.
  struct Stream {
    uint64_t cache_id;
    int64_t last;  // the newest miss: the reader is here
    int64_t end;   // the first page that was not issued yet
    int64_t tripwire;
    int64_t stride;          // 0: the stream is free
    uint32_t window;         // pages
    uint32_t wasted;         // issued pages of this window that were missed
    uint32_t used;           // clock_ at the last miss
    uint32_t before, after;  // paid pages that the tripwire and `end` will prove
    uint32_t again;          // pages next to `last` that were paid twice
    uint32_t length;         // pages from where the stream began to `end`
    uint32_t proof;          // so many pages behind `last` the boundary watched is crossed
    uint8_t watched;         // the step of that boundary, and 1; 0: none is watched
    uint8_t passed;          // steps below this one are not walls: the reader has crossed one there
    bool is_at_wall;         // nothing is issued behind `end`
  };
  enum class Match : uint8_t { kNone, kBeyond, kInside, kArrived };

  bool is_stale(const Stream& stream) const;
  static Match match(const Stream& stream, uint64_t cache_id, int64_t page);
  int64_t detect(uint64_t cache_id, int64_t page, bool is_sequential) const;
  bool has_missed(uint64_t cache_id, int64_t page) const;
  Stream& start(const Miss& miss, int64_t stride);
  bool follow(Stream& stream, Match how, const Miss& miss);
  void give_up(Stream& stream);
  void earn(uint64_t credit, const Miss& miss) {
    credit_.earn(credit, miss.window_max, [this] { return count(); });
  }
  void settle(Stream& stream, Match how, const Miss& miss);
  static void move_end(Stream& stream, int64_t end);
  static void note_way(Stream& stream, int64_t page, const Miss& miss);
  static bool is_wall(Stream& stream, const Miss& miss);
  Advice issue(Stream& stream, const Miss& miss);
  void fill_along(Stream& stream, int64_t paid_end, const Miss& miss, Advice* advice);
  void remember(uint64_t cache_id, int64_t page);

  Stream stream_[kStreams];
  uint64_t missed_[kHistory];  // a ring; cache and page in one word; 0: none
  uint32_t missed_next_;
  uint32_t clock_;
  uint32_t resting_;   // misses left without detection
  uint32_t failures_;  // streams given up since one arrived
  StreamCredit credit_;
};
static_assert(sizeof(StreamTable) <= 2560, "every thread that faults has one");

}  // namespace outcore::prefetch
