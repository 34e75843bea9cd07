#include "core/published/events.h"

#include <algorithm>

namespace outcore::published {

void EventRing::put(const Event& event) {
  OC_ASSERT(event.page < kPagesMax);
  OC_ASSERT(event.slot < 1024);
  const uint64_t number = next_.fetch_add(1, std::memory_order_acq_rel);
  Cell& cell = cells_[number % kEvents];
  // A thread that was stopped for a whole round of the ring finds its cell with what is newer, or
  // being written: its event is lost, so that a cell never has parts of two.
  uint64_t before = cell.number.load(std::memory_order_relaxed);
  do {
    if (before > number) return;
  } while (!cell.number.compare_exchange_weak(before, Cell::kWriting, std::memory_order_acquire,
                                              std::memory_order_relaxed));
  std::atomic_thread_fence(std::memory_order_release);
  const uint64_t what = static_cast<uint64_t>(event.kind) << 61 |
                        static_cast<uint64_t>(event.pattern) << 59 | uint64_t{event.slot} << 48 |
                        uint64_t{event.users & kUsersMask} << 40 | event.page;
  cell.what.store(what, std::memory_order_relaxed);
  cell.time_ns.store(event.time_ns, std::memory_order_relaxed);
  cell.site.store(event.site, std::memory_order_relaxed);
  const uint64_t spent = std::min<uint64_t>(event.duration_ns / 16, UINT32_MAX);
  cell.spent.store(spent << 32 | event.thread, std::memory_order_relaxed);
  cell.number.store(number + 1, std::memory_order_release);
}

bool EventRing::get(uint64_t number, Event* event) const {
  const Cell& cell = cells_[number % kEvents];
  if (cell.number.load(std::memory_order_acquire) != number + 1) return false;
  const uint64_t what = cell.what.load(std::memory_order_relaxed);
  event->kind = static_cast<EventKind>(what >> 61);
  event->pattern = static_cast<Pattern>(what >> 59 & 3);
  event->slot = static_cast<uint32_t>(what >> 48 & 0x3FF);
  event->users = static_cast<uint32_t>(what >> 40 & kUsersMask);
  event->page = what & (kPagesMax - 1);
  event->time_ns = cell.time_ns.load(std::memory_order_relaxed);
  event->site = cell.site.load(std::memory_order_relaxed);
  const uint64_t spent = cell.spent.load(std::memory_order_relaxed);
  event->duration_ns = (spent >> 32) * 16;
  event->thread = static_cast<uint32_t>(spent);
  std::atomic_thread_fence(std::memory_order_acquire);
  return cell.number.load(std::memory_order_relaxed) == number + 1 &&
         event->kind < EventKind::kCount && event->pattern < Pattern::kCount;
}

namespace {

bool is_forward(uint64_t step) { return static_cast<int64_t>(step) >= 0; }
bool is_near(uint64_t step) { return std::min(step, ~step + 1) <= PatternTable::kNearBytes; }

// One is a few times a part of the other: a loop in even steps, some of whose pages were there.
bool are_even(uint64_t step, uint64_t before) {
  constexpr uint64_t kMost = 4;
  for (uint64_t m = 1; m <= kMost; ++m)
    for (uint64_t n = 1; n <= kMost; ++n)
      if (m * step == n * before) return true;
  return false;
}

}  // namespace

Pattern PatternTable::note(uint32_t thread, uint64_t site, uint64_t store, uint64_t offset_bytes) {
  const uint64_t key = (site ^ store << 48 ^ uint64_t{thread} << 40) * 0x9E3779B97F4A7C15ull | 1;
  Last& last = last_[key >> 54];
  const bool is_known = last.key.load(std::memory_order_relaxed) == key;
  const uint64_t step = offset_bytes - last.offset.load(std::memory_order_relaxed);
  const uint64_t before = last.step.load(std::memory_order_relaxed);
  last.key.store(key, std::memory_order_relaxed);
  last.offset.store(offset_bytes, std::memory_order_relaxed);
  last.step.store(is_known ? step : 0, std::memory_order_relaxed);
  if (!is_known) return Pattern::kRandom;
  // In a small file any two pages are near each other; twice the same way they seldom are.
  const bool goes_on = before == 0 || (is_near(before) && is_forward(step) == is_forward(before));
  if (is_near(step) && goes_on) return Pattern::kSequential;
  return before != 0 && are_even(step, before) ? Pattern::kStrided : Pattern::kRandom;
}

}  // namespace outcore::published
