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
// - Credit: what is brought in ahead must be earned. A page that is issued costs one page of it,
//   also when it is brought in once more. The tripwire and the page behind the window tell what
//   became of those before them: a reader that misses them read the others, too (who skips pages
//   skips these as often), and has the cost back, and more. How much more is what a read that is
//   not waited for is worth in pages that come along with others: four where a few readers wait
//   for the device, a half where many keep it and the processors busy. A miss gives an eighth. So
//   what is issued and never read stays below a part of what was asked for, and each page of it
//   costs at most one other its place: whatever the program does, readahead that does not pay reads
//   little more than none would.
// Random misses are almost never equally spaced: 1 million of them in 2^20 pages cause a handful of
// windows.
#pragma once

#include <algorithm>
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
  // Credit counts in sixteenths of a page.
  static constexpr int32_t kCreditOfPage = 16, kCreditOfMiss = 2;
  static constexpr int32_t kCreditOfUse = 64, kCreditOfUseByMany = 8;
  static constexpr uint32_t kFewReaders = 8;
  static constexpr int32_t kFirstCredit = 32 * kCreditOfPage;
  static constexpr uint32_t kLately = 64;  // and 32 windows: misses without its own, and it is over
  static constexpr uint32_t kWindowMost = 1 << 14;  // pages
  static constexpr uint32_t kWalkMin = 64;  // pages, and four windows, are looked at for a window
  static constexpr uint64_t kPagesMax = uint64_t{1} << 40;

  // At most two runs: before and after a tripwire. None: nothing to bring in.
  struct Advice {
    PageRun run[2];
    uint32_t run_count;
    int64_t stride;  // of the stream that the miss belongs to; 0: none
    uint32_t along;  // its next pages that may be filled with the miss: all of them are issued
  };

  // Pages: which of a space are not in memory. A glance: it may change.
  struct Pages {
    const void* of = nullptr;
    bool (*is_absent)(const void* of, uint64_t page) = nullptr;  // nullptr: all are
    bool has(int64_t page) const {
      return is_absent == nullptr || is_absent(of, static_cast<uint64_t>(page));
    }
  };
  struct Miss {
    uint64_t space_id = 0, page = 0;
    uint64_t page_end = 0;       // runs stay below it
    uint32_t window_max = 0;     // pages of the largest window; 0: no advice
    uint32_t along_max = 0;      // pages beside it that the caller can fill with this miss
    bool is_sequential = false;  // the reader promises to go forward: the first miss starts a
                                 // stream at the largest window, and needs no credit
    bool is_in_flight = false;   // the page is being filled already
    uint32_t readers = 1;        // threads that miss pages lately
    bool has_hints = false;      // some wait in the prefetcher's queue: what is missing may be late
    Pages absent{};
  };
  Advice on_miss(const Miss& miss);

  // Streams that are not over.
  uint32_t count() const;

  bool is_valid() const;

 private:
  // Pages from `last` to `end`, `stride` apart, were issued or in memory, but for the tripwire.
  // tripwire == end: it has none.
  struct Stream {
    uint64_t space_id;
    int64_t last;  // the newest miss: here the reader is
    int64_t end;   // the first page not yet issued
    int64_t tripwire;
    int64_t stride;          // 0: the stream is free
    uint32_t window;         // pages
    uint32_t wasted;         // issued pages of this window that were missed
    uint32_t used;           // clock_ at the last miss
    uint32_t before, after;  // pages that were paid, and are to be proved by the tripwire and `end`
    uint32_t again;          // pages next to `last` that were paid twice
  };
  enum class Match : uint8_t { kNone, kBeyond, kInside, kArrived };

  bool is_stale(const Stream& stream) const;
  static Match match(const Stream& stream, uint64_t space_id, int64_t page);
  int64_t detect(uint64_t space_id, int64_t page, bool is_sequential) const;
  bool has_missed(uint64_t space_id, int64_t page) const;
  Stream& start(const Miss& miss, int64_t stride);
  bool follow(Stream& stream, Match how, const Miss& miss);
  void give_up(Stream& stream);
  void earn(uint64_t credit, const Miss& miss);
  void settle(Stream& stream, Match how, const Miss& miss);
  uint32_t affordable() const {
    return static_cast<uint32_t>(std::max(kFirstCredit - spent_, 0) / kCreditOfPage);
  }
  Advice issue(Stream& stream, const Miss& miss);
  void fill_along(Stream& stream, int64_t paid_end, const Miss& miss, Advice* advice);
  void remember(uint64_t space_id, int64_t page);

  Stream stream_[kStreams];
  uint64_t missed_[kHistory];  // space and page in one word, 0: none; a ring
  uint32_t missed_next_;
  uint32_t clock_;
  uint32_t resting_;   // misses left without detection
  uint32_t failures_;  // streams given up since one arrived
  int32_t spent_;      // of the first credit; negative: there is more
};
static_assert(sizeof(StreamTable) <= 2304, "every thread that faults has one");

}  // namespace outcore::prefetch
