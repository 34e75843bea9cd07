// Events: what happens to pages, one by one, in a ring that whoever watches reads. Off, it costs
// the fault path one load.
//
// Events are published of those pages whose number's hash is a multiple of the sample's size, so
// that a page is published always or never (SHARDS: Waldspurger et al., FAST 2015): what is counted
// of the sample, times its size, is true of all. A ring that is full begins again: events that
// nobody has read are lost, and the reader knows how many.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/base/assert.h"

namespace outcore::published {

// A guess is a fill of a page that nobody asked for: it came in beside another.
enum class EventKind : uint8_t { kFault, kFill, kGuess, kEviction, kRescue, kWriteBack, kCount };
// How the pages follow each other that one thread misses at one place in the code.
enum class Pattern : uint8_t { kRandom, kSequential, kStrided, kCount };

struct Event {
  EventKind kind = EventKind::kFault;
  Pattern pattern = Pattern::kRandom;  // of faults
  uint32_t slot = 0, users = 0;        // of the store: its number, and StoreSlot::users, cut
  uint64_t page = 0;
  uint64_t time_ns = 0, duration_ns = 0;  // when it ended; of faults and write-backs
  uint64_t site = 0;                      // of faults: the address of the instruction; 0: unknown
  uint32_t thread = 0;                    // a number that no other thread has, mostly
};

class EventRing {
 public:
  static constexpr uint64_t kEvents = 1 << 14;
  static constexpr uint32_t kUsersMask = 0xFF;
  static constexpr uint64_t kPagesMax = uint64_t{1} << 40;

  // All of it may be zero bytes, which is a ring that is off.
  bool is_on() const { return is_on_.load(std::memory_order_relaxed) != 0; }
  void turn(bool on) { is_on_.store(on ? 1 : 0); }
  // A power of two: events of one in so many pages are published.
  uint64_t sampled_one_in() const {
    return uint64_t{sample_mask_.load(std::memory_order_relaxed)} + 1;
  }
  void sample_one_in(uint32_t pages) {
    OC_CHECK(pages != 0 && (pages & (pages - 1)) == 0);
    sample_mask_.store(pages - 1);
  }
  bool wants(uint64_t page) const { return is_in_sample(page, sampled_one_in()); }
  static bool is_in_sample(uint64_t page, uint64_t one_in) {
    return (page * 0x9E3779B97F4A7C15ull >> 40 & (one_in - 1)) == 0;
  }

  // Any thread; the fault path: no lock, no call. Lost if its place is being written by another
  // thread, which is a whole round behind.
  void put(const Event& event);
  // The event of this number, counted from the ring's beginning. False: it is not there any more,
  // or not yet.
  bool get(uint64_t number, Event* event) const;
  uint64_t end() const { return next_.load(std::memory_order_acquire); }

 private:
  struct Cell {
    static constexpr uint64_t kWriting = UINT64_MAX;
    std::atomic<uint64_t> number;  // of the event that is in it, + 1; 0: none; or kWriting
    std::atomic<uint64_t> what;    // kind, pattern, slot, users, page
    std::atomic<uint64_t> time_ns, site, spent;
  };
  std::atomic<uint32_t> is_on_{0}, sample_mask_{0};
  alignas(64) std::atomic<uint64_t> next_{0};
  alignas(64) std::array<Cell, kEvents> cells_{};
};

// What a thread's last misses at a place were, to see a pattern. Any thread; the fault path: what
// two threads note of one place at one moment may be mixed.
class PatternTable {
 public:
  // A step of so many bytes at most goes on where the last one was, if that was as short, and the
  // same way.
  static constexpr uint64_t kNearBytes = 1 << 20;
  Pattern note(uint32_t thread, uint64_t site, uint64_t store, uint64_t offset_bytes);

 private:
  struct Last {
    std::atomic<uint64_t> key{0}, offset{0}, step{0};
  };
  std::array<Last, 1024> last_{};
};

}  // namespace outcore::published
