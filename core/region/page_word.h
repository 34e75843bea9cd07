// PageWord: the state of one page, in one atomic word. It is the only place where fillers and
// keepers meet.
//
//   Absent ─▶ Filling ─▶ Resident ◀─▶ Busy
//     ▲          │           │   ▲
//     │          ▼           ▼   │ rescued (through Busy)
//     │        Failed     Unmapping ─▶ Leaving ─▶ Dropping ─┐
//     └────────────────────────────────────────────────────┘
//
// Busy: one thread maps or rescues the page; others wait. Which thread may change a state: Filling
// and Busy, the thread that entered it. Resident without pins ─▶ Unmapping ─▶ Leaving or Dropping
// (discarded) ─▶ Absent: the holder of the shard's turn. Leaving ─▶ Busy: any fault (a rescue).
// Resident ─▶ Frozen ─▶ Resident: a cut. Nobody can write a frozen page; a thread that touches it
// waits until its bytes are copied or stored.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::region {

enum class PageState : uint8_t {
  kAbsent,
  kFilling,
  kResident,
  kBusy,
  kUnmapping,
  kLeaving,
  kDropping,
  kFailed,
  kFrozen
};

// A value of the word. Waiting threads sleep on its lower half.
class PageValue {
 public:
  constexpr PageValue() = default;
  constexpr explicit PageValue(uint64_t bits) : bits_(bits) {}
  constexpr uint64_t bits() const { return bits_; }

  constexpr PageState state() const { return static_cast<PageState>(bits_ & 15); }
  constexpr PageValue with(PageState s) const {
    return PageValue((bits_ & ~uint64_t{15}) | static_cast<uint64_t>(s));
  }

  // A thread sleeps until the word changes.
  static constexpr uint64_t kWaiters = 1 << 4;
  // Removed from the policy because it was a victim and found pinned; the last unpin notifies the
  // keeper.
  static constexpr uint64_t kParked = 1 << 5;
  // A write-back of the page is under way. One at a time: otherwise an older one could end last.
  static constexpr uint64_t kWriting = 1 << 6;
  // The page is leaving, and everything that was written is in the store.
  static constexpr uint64_t kCleaned = 1 << 7;
  // Written since it was last clean. Only for frames where the first write to a clean page is a
  // fault.
  static constexpr uint64_t kDirty = 1 << 8;
  // Its bytes are zeros because its read failed (on_error = zero). Only in caches that nobody
  // writes.
  static constexpr uint64_t kZeroed = 1 << 9;
  constexpr bool has(uint64_t flag) const { return (bits_ & flag) != 0; }
  constexpr PageValue plus(uint64_t flag) const { return PageValue(bits_ | flag); }
  constexpr PageValue minus(uint64_t flag) const { return PageValue(bits_ & ~flag); }

  static constexpr uint32_t kPinsMax = 0xFFFF;
  constexpr uint32_t pins() const { return static_cast<uint32_t>(bits_ >> 16 & kPinsMax); }
  constexpr PageValue with_pins(uint32_t pins) const {
    OC_ASSERT(pins <= kPinsMax);
    return PageValue((bits_ & ~(uint64_t{kPinsMax} << 16)) | uint64_t{pins} << 16);
  }
  // The frame that holds the page; in state Failed, the errno of the fill.
  constexpr uint32_t frame() const { return static_cast<uint32_t>(bits_ >> 32); }
  constexpr PageValue with_frame(uint32_t frame) const {
    return PageValue((bits_ & 0xFFFFFFFFu) | uint64_t{frame} << 32);
  }

 private:
  uint64_t bits_ = 0;
};

class PageWord {
 public:
  PageValue load() const {
    os::interleave();  // a simulation lets others run between a look at the word and a change
    return PageValue(bits_.load(std::memory_order_acquire));
  }

  // Reads the state without a simulation point, for a guess that may be wrong.
  PageState glance() const { return PageValue(bits_.load(std::memory_order_relaxed)).state(); }

  // For assertions.
  PageValue peek() const { return PageValue(bits_.load(std::memory_order_relaxed)); }

  // Changes the word from `seen` to `next`, and wakes the threads that wait. False: the word had
  // another value, which is now in `seen`.
  bool change(PageValue& seen, PageValue next) {
    os::interleave();
    OC_ASSERT(is_step_allowed(seen, next));
    OC_ASSERT(next.state() <= PageState::kFrozen);
    OC_ASSERT(next.pins() == 0 || may_be_pinned(next.state()));
    OC_ASSERT(next.pins() != 0 || !next.has(PageValue::kParked));
    OC_ASSERT(!next.has(PageValue::kCleaned) || next.state() != PageState::kResident);
    OC_ASSERT(!next.has(PageValue::kWriting) || next.state() != PageState::kUnmapping);
    OC_ASSERT(!next.has(PageValue::kWriting) || next.state() != PageState::kFrozen);
    OC_ASSERT(next.state() != PageState::kAbsent || is_bare(next));
    OC_ASSERT(next.state() != PageState::kFilling || is_bare(next));
    OC_ASSERT(next.state() != PageState::kFailed || next.frame() != 0);
    OC_ASSERT(is_new(seen, next) || seen.frame() == next.frame());
    uint64_t bits = seen.bits();
    if (!bits_.compare_exchange_strong(bits, next.minus(PageValue::kWaiters).bits(),
                                       std::memory_order_acq_rel)) {
      seen = PageValue(bits);
      return false;
    }
    if (seen.has(PageValue::kWaiters)) os::wake_all(low());
    return true;
  }

  // Applies `step` (PageValue → PageValue) until the change succeeds, and returns the new value.
  template <typename Step>
  PageValue update(const Step& step) {
    PageValue seen = load();
    for (;;) {
      const PageValue next = step(seen);
      if (change(seen, next)) return next.minus(PageValue::kWaiters);
    }
  }

  // Sleeps until the word is no longer `seen`, at most about timeout_ns. May return early.
  void wait_while(PageValue seen, uint64_t timeout_ns) {
    uint64_t bits = seen.bits();
    const PageValue waited = seen.plus(PageValue::kWaiters);
    if (!seen.has(PageValue::kWaiters) &&
        !bits_.compare_exchange_strong(bits, waited.bits(), std::memory_order_acq_rel))
      return;
    os::wait(low(), static_cast<uint32_t>(waited.bits()), timeout_ns);
  }

 private:
  static bool is_step_allowed(PageValue from, PageValue to);
  static bool may_be_pinned(PageState state) {
    return state == PageState::kResident || state == PageState::kBusy;
  }
  // Neither flags nor pins nor a frame.
  static bool is_bare(PageValue v) {
    return v.minus(PageValue::kWaiters).with(PageState::kAbsent).bits() == 0;
  }
  // The frame, or what stands in its place, may be another.
  static bool is_new(PageValue from, PageValue to) {
    return from.state() != to.state() &&
           (from.state() == PageState::kFilling || to.state() == PageState::kFilling ||
            to.state() == PageState::kAbsent);
  }
  std::atomic<uint32_t>* low() { return reinterpret_cast<std::atomic<uint32_t>*>(&bits_); }
  std::atomic<uint64_t> bits_{0};
};
static_assert(sizeof(PageWord) == 8);

inline bool PageWord::is_step_allowed(PageValue from, PageValue to) {
  using S = PageState;
  const S a = from.state(), b = to.state();
  if ((b == S::kUnmapping || b == S::kFrozen) &&
      (from.pins() != 0 || from.has(PageValue::kWriting)))
    return false;
  if (b == S::kDropping && to.has(PageValue::kWriting)) return false;
  if (a == b) return true;
  switch (a) {
    case S::kAbsent:
      return b == S::kFilling;
    case S::kFilling:
      return b == S::kResident || b == S::kFailed || b == S::kAbsent;
    case S::kResident:
      return b == S::kBusy || b == S::kUnmapping || b == S::kFrozen;
    case S::kBusy:
      return b == S::kResident;
    case S::kUnmapping:
      return b == S::kLeaving || b == S::kDropping || b == S::kResident;
    case S::kLeaving:
      return b == S::kBusy || b == S::kDropping || b == S::kResident;
    case S::kDropping:
      return b == S::kAbsent || b == S::kResident;  // back: the kernel refused to free it
    case S::kFailed:
      return b == S::kAbsent || b == S::kFilling;  // Filling: its poison is removed
    case S::kFrozen:
      return b == S::kResident;
  }
  return false;
}

}  // namespace outcore::region
