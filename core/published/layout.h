// Layout: the memory in which a runtime publishes what it counts (docs/internals/decisions/0043).
//
// The counters themselves lie there: to publish costs nothing, and nobody has to be asked. Whoever
// reads looks at what another process may change at any moment: every number is atomic, and texts
// end with a zero wherever they are cut.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/budget/budget.h"
#include "core/metrics/counter_block.h"
#include "core/prefetch/fetch_tuner.h"
#include "core/published/events.h"

namespace outcore::published {

// The name of its memory file, as /proc/PID/fd shows it.
inline constexpr char kFileName[] = "outcore-published";

// A text that another process may read while it is written.
template <size_t kBytes>
class Text {
 public:
  // Cut between two letters (of UTF-8) if it is too long, and then ends in "…".
  void set(std::string_view text) {
    static constexpr std::string_view kCut = "\xE2\x80\xA6";
    static_assert(kBytes > kCut.size() + 1);
    const bool is_cut = text.size() >= kBytes;
    size_t kept = is_cut ? kBytes - 1 - kCut.size() : text.size();
    for (int i = 0; is_cut && i < 3 && kept != 0 && (text[kept] & 0xC0) == 0x80; ++i) --kept;
    for (size_t i = 0; i + 1 < kBytes; ++i) {
      const char c = i < kept ? text[i] : is_cut && i - kept < kCut.size() ? kCut[i - kept] : '\0';
      bytes_[i].store(c, std::memory_order_relaxed);
    }
  }
  std::string get() const {
    std::string text;
    for (size_t i = 0; i + 1 < kBytes; ++i) {
      const char c = bytes_[i].load(std::memory_order_relaxed);
      if (c == '\0') break;
      text += c;
    }
    return text;
  }

 private:
  std::array<std::atomic<char>, kBytes> bytes_{};
};

// A text that changes while others read it. They have it whole if `changes` is even, and the same
// before they read it and afterwards.
template <size_t kBytes>
struct ChangingText {
  std::atomic<uint32_t> changes{0};
  Text<kBytes> text;

  // REQUIRES: one at a time.
  void set(std::string_view value) {
    const uint32_t before = changes.load(std::memory_order_relaxed);
    changes.store(before + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    text.set(value);
    changes.store(before + 2, std::memory_order_release);
  }
};

// Where a store is mapped. Start and end of another moment each, while it changes.
struct Place {
  std::atomic<uint64_t> start{0}, end{0};  // addresses of the process; 0: nothing is there
};

// What is published of the pages of one store.
struct StoreSlot {
  static constexpr uint32_t kPlaces = 16;
  // Odd: a page cache uses it. It changes with each user, so that who reads knows whether all that
  // was read belongs together.
  std::atomic<uint32_t> users{0};
  // is_degraded: something was not stored yet. is_over: what it counted is in Layout::ended.
  // 0: no. Whoever publishes may have put any number there.
  std::atomic<uint32_t> is_writable{0}, is_shared{0}, is_degraded{0}, is_over{0};
  std::atomic<uint32_t> is_described{0};  // set last: all that is not counted is there
  std::atomic<uint64_t> store_bytes{0}, page_bytes{0}, resident_bytes{0};
  std::array<Place, kPlaces> places;
  std::atomic<uint32_t> places_left_out{0};  // further mappings
  Text<16> delivery, frames;
  Text<512> uri;
  prefetch::FetchCounts fetches;
  metrics::CounterBlock counters;

  // As nobody has used it. REQUIRES: nobody uses it but the caller, who reads apart.
  void clear();
  // Its mapping of this number begins here; it has gone. REQUIRES: one at a time for each number.
  void add_place(uint32_t number, uint64_t start, uint64_t size_bytes);
  void remove_place(uint32_t number);
};

// A file whose mappings are the kernel's, by `outcore run`.
struct LeftFile {
  std::atomic<uint64_t> size_bytes{0};
  Text<256> path, reason;
};

struct Layout {
  static constexpr uint32_t kSlots = 512, kLeftFiles = 8;
  static constexpr char kMagic[] = "outcore sheet";

  // These four stay where they are in every format, so that a reader of another can say so.
  Text<16> magic;
  std::atomic<uint32_t> format{0};  // format_of_this_library(); 0: not ready yet
  std::atomic<int32_t> process{0};  // in its own namespace of processes
  Text<32> version;                 // of the library

  std::atomic<uint64_t> started_ns{0};  // since 1970
  Text<64> policy, budget_source;
  ChangingText<64> policy_now;  // of `policy = auto`: the one that it has taken
  std::atomic<uint64_t> buffer_bytes{0};
  Text<128> shared_buffer;  // its name; empty: none
  budget::BudgetCells budget;
  std::atomic<uint32_t> slots_used{0};  // the first so many have had a user
  // Odd: the counts of a slot are being moved to `ended`, so that a sum over both would have them
  // twice, or not at all. Whoever sums looks whether it is the same afterwards.
  std::atomic<uint32_t> moves{0};
  metrics::CounterBlock ended;  // of caches that are gone
  // The first ones; one that is told is not changed any more.
  std::atomic<uint32_t> left_files_used{0};
  std::array<LeftFile, kLeftFiles> left_files;
  std::array<StoreSlot, kSlots> slots;

  // The cache of this slot counts no more. REQUIRES: one at a time.
  void end(StoreSlot& slot);
  // The file is the kernel's, and why. Those that there is no room for are not told. REQUIRES: one
  // at a time.
  void add_left_file(std::string_view path, uint64_t size_bytes, std::string_view reason);
};

// Behind the layout, on pages of their own, which take memory only once a process watches.
struct Memory {
  Layout layout;
  alignas(base::kSystemPage) EventRing events;
};

// Differs between libraries whose layouts, or counters, differ.
uint32_t format_of_this_library();

}  // namespace outcore::published
