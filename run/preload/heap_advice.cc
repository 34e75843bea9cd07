// What madvise() and mlock() of the program do to memory of the heap. See heap.h.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "run/preload/door.h"
#include "run/preload/heap.h"
#include "run/preload/own_memory.h"
#include "run/preload/page_advice.h"
#include "run/preload/real.h"

namespace outcore::preload {

using base::kSystemPage;
using base::round_down;
using base::round_up;
using region::View;

namespace {
constexpr int kCollapse = 25;  // MADV_COLLAPSE, newer than the headers of Debian 12
}

// Of a part of one page of ours, which is to be zeroed: what to clear. What the program may not
// write becomes the kernel's, which can. 0 or an errno.
int Heap::free_edge(uint64_t from, uint64_t to, Range* to_zero) {
  OC_ASSERT(from < to && to - from < page_bytes());
  {
    const os::Locked locked(lock_);
    if (is_free(from, to)) return 0;
  }
  const int protection = views_->protection_at(from);
  if (protection < 0) return 0;  // the kernel's
  if (protection == kHeapProtection) return *to_zero = {from, to}, 0;
  const uint64_t page = round_down(from, page_bytes());
  return views_->hand_over(page, page + page_bytes());
}

// MADV_DONTNEED discards whole pages of ours; parts of pages at both ends are zeroed.
int Heap::zero_edges(std::byte* address, size_t bytes) {
  Range to_zero[2];
  {
    const Inside inside;
    const int error = on_parts(
        address, bytes,
        [&](uint64_t from, uint64_t to) {
          if (is_child_) return 0;
          const uint64_t head = std::min(round_up(from, page_bytes()), to);
          const uint64_t tail = std::max(round_down(to, page_bytes()), head);
          int result = from < head ? free_edge(from, head, &to_zero[0]) : 0;
          if (result == 0 && tail < to) result = free_edge(tail, to, &to_zero[1]);
          return result;
        },
        [](std::byte*, size_t) { return 0; });
    if (error != 0) return error;
  }
  for (const Range& r : to_zero)
    if (r.from < r.to) std::memset(views_->address() + r.from, 0, r.to - r.from);
  return 0;
}

int Heap::advise(std::byte* address, size_t bytes, int advice) {
  if (reinterpret_cast<uint64_t>(address) % kSystemPage != 0) return EINVAL;
  if ((advice == MADV_DONTNEED || advice == MADV_FREE) && is_locked(address, bytes)) return EINVAL;
  if (advice == MADV_DONTNEED)
    if (const int error = zero_edges(address, round_up(bytes, kSystemPage)); error != 0)
      return error;
  const Inside inside;
  return on_parts(
      address, round_up(bytes, kSystemPage),
      [&](uint64_t from, uint64_t to) {
        if (is_child_) return advise_childs(from, to, advice);
        return views_->for_each(
            from, to,
            [&](View& view, uint64_t a, uint64_t b) { return advise_ours(view, a, b, advice); },
            [&](uint64_t a, uint64_t b) {
              return Door::instance().advise(views_->address() + a, b - a, advice);
            });
      },
      [&](std::byte* at, size_t n) { return Door::instance().advise(at, n, advice); });
}

bool Heap::has_messages() const {
  return views_ != nullptr && views_->cache().delivery == Delivery::kMessages;
}

int Heap::leave(const std::byte* address, size_t bytes) {
  const Inside inside;
  return on_parts(
      address, bytes,
      [this](uint64_t from, uint64_t to) {
        if (is_child_) return revive(), 0;  // it is the kernel's already
        from = round_down(from, page_bytes());
        to = round_up(to, page_bytes());
        return while_unpinned(from, to, [&] { return views_->hand_over(from, to); });
      },
      [](std::byte*, size_t) { return 0; });
}

// Offsets in the heap are offsets in the page cache. Hints about the order of reads are ignored,
// because one reader gives them and all readers share the view.
int Heap::advise_ours(View& view, uint64_t from, uint64_t to, int advice) {
  OC_ASSERT(from < to && to <= views_->size_bytes());
  const uint64_t bytes = page_bytes();
  switch (advice) {
    case MADV_DONTNEED:
    case MADV_FREE: {
      const uint64_t inner = std::min(round_up(from, bytes), to);
      const uint64_t inner_end = std::max(round_down(to, bytes), inner);
      return inner == inner_end ? 0 : views_->discard(inner, inner_end);
    }
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case kCollapse:  // concerns only the size of the kernel's pages
      return 0;
    case MADV_POPULATE_READ:
    case MADV_POPULATE_WRITE:
      if (view.is_closed || (advice == MADV_POPULATE_WRITE && !view.is_writable)) return EINVAL;
      return fill_pages(views_->engine(), view, from / bytes, (to + bytes - 1) / bytes);
    default:
      return advise_pages(views_->engine(), view, from / bytes, (to + bytes - 1) / bytes, advice);
  }
}

bool Heap::is_pinned(const Range& range) {
  if (!has_pins_.load(std::memory_order_acquire)) return false;
  const std::lock_guard<std::mutex> guard(pinning_);
  const auto at = pinned_.lower_bound(range.to);
  return at != pinned_.begin() && std::prev(at)->second > range.from;
}

// Whether the program has locked some of it in memory: then it cannot be given up.
bool Heap::is_locked(const std::byte* address, size_t bytes) {
  if (!has_pins_.load(std::memory_order_acquire)) return false;
  const Inside inside;
  std::vector<Range> ours;  // of the rest the kernel says it
  const auto nothing = [](auto, auto) { return 0; };
  const auto look = [&](uint64_t from, uint64_t to) {
    if (is_child_) return 0;
    const auto add = [&](View&, uint64_t a, uint64_t b) { return ours.push_back({a, b}), 0; };
    return views_->for_each(from, to, add, nothing);
  };
  static_cast<void>(on_parts(address, round_up(bytes, kSystemPage), look, nothing));
  return std::any_of(ours.begin(), ours.end(), [this](const Range& r) { return is_pinned(r); });
}

// Pages that are pinned cannot change hands, and nothing is written to be stored while they are
// protected. What of them cannot be pinned again is not: nobody could be told. Who locks or unlocks
// waits.
int Heap::while_unpinned(uint64_t from, uint64_t to, const std::function<int()>& change) {
  if (!has_pins_.load(std::memory_order_acquire)) return change();
  const std::lock_guard<std::mutex> guard(pinning_);
  std::vector<Range> held;
  for (const auto& [a, b] : pinned_)
    if (std::max(a, from) < std::min(b, to)) held.push_back({std::max(a, from), std::min(b, to)});
  if (!held.empty()) static_cast<void>(change_pins(from, to, false));
  const int error = change();
  for (const Range& r : held) static_cast<void>(change_pins(r.from, r.to, true));
  return error;
}

// The locks of the range are gone, or have moved, with the kernel's mappings that had them.
void Heap::forget_pins(uint64_t from, uint64_t to) {
  if (!has_pins_.load(std::memory_order_acquire)) return;
  const std::lock_guard<std::mutex> guard(pinning_);
  static_cast<void>(take_pins(from, to));
  has_pins_.store(!pinned_.empty(), std::memory_order_release);
}

// Removes what is noted of the range, and returns it. REQUIRES, here and below: `pinning_`.
std::vector<Heap::Range> Heap::take_pins(uint64_t from, uint64_t to) {
  std::vector<Range> held;
  for (auto at = pinned_.begin(); at != pinned_.end();) {
    const auto [a, b] = *at;
    if (b <= from || a >= to) {
      ++at;
      continue;
    }
    held.push_back({std::max(a, from), std::min(b, to)});
    at = pinned_.erase(at);
    if (a < from) pinned_[a] = from;
    if (b > to) pinned_[to] = b;
  }
  return held;
}

// Pins what is not pinned yet, or unpins what is. 0 or an errno.
int Heap::pin(uint64_t from, uint64_t to, bool is_pin) {
  if (!is_pin && !has_pins_.load(std::memory_order_acquire)) return 0;
  const std::lock_guard<std::mutex> guard(pinning_);
  return change_pins(round_down(from, page_bytes()), round_up(to, page_bytes()), is_pin);
}

int Heap::change_pins(uint64_t from, uint64_t to, bool is_pin) {
  const std::vector<Range> held = take_pins(from, to);
  const auto change_all = [&](uint64_t a, uint64_t b, bool is_on, uint64_t* done) {
    return views_->for_each(
        a, b,
        [&](View& view, uint64_t x, uint64_t y) {
          const std::byte* address = views_->address() + x;
          paging::Engine& engine = views_->engine();
          const Status s =
              is_on ? engine.pin(view, address, y - x) : engine.unpin(view, address, y - x);
          if (s.ok()) *done = y;
          return s.ok() ? 0 : s.code();
        },
        [&](uint64_t x, uint64_t y) {
          const std::byte* address = views_->address() + x;
          const int r = is_on ? real().mlock(address, y - x) : real().munlock(address, y - x);
          if (r == 0) *done = y;
          return r == 0 ? 0 : errno;
        });
  };
  // All of it, or nothing.
  const auto change = [&](uint64_t a, uint64_t b, bool is_on) {
    uint64_t done = a, undone = a;
    const int error = change_all(a, b, is_on, &done);
    if (error != 0 && is_on && done > a) static_cast<void>(change_all(a, done, false, &undone));
    return error;
  };
  int result = 0;
  if (is_pin) {
    uint64_t at = from;
    for (const Range& r : held) {
      if (at < r.from && result == 0) result = change(at, r.from, true);
      if (at < r.from && result == 0) pinned_[at] = r.from;
      pinned_[r.from] = r.to;
      at = r.to;
    }
    if (at < to && result == 0) result = change(at, to, true);
    if (at < to && result == 0) pinned_[at] = to;
  } else {
    for (const Range& r : held) static_cast<void>(change(r.from, r.to, false));
  }
  has_pins_.store(!pinned_.empty(), std::memory_order_release);
  return result;
}

int Heap::lock(const std::byte* address, size_t bytes) {
  const Inside inside;
  if (!OwnMemory::has_room(OwnMemory::kCallBytes)) return ENOMEM;
  return on_parts(
      address, bytes,
      [this](uint64_t from, uint64_t to) {
        if (!is_child_) return pin(from, to, true);
        revive();
        return real().mlock(views_->address() + from, to - from) == 0 ? 0 : errno;
      },
      [](std::byte* at, size_t n) { return real().mlock(at, n) == 0 ? 0 : errno; });
}

void Heap::unlock(const std::byte* address, size_t bytes) {
  const Inside inside;
  static_cast<void>(on_parts(
      address, bytes,
      [this](uint64_t from, uint64_t to) {
        if (!is_child_) return pin(from, to, false);
        return real().munlock(views_->address() + from, to - from) == 0 ? 0 : errno;
      },
      [](std::byte* at, size_t n) { return real().munlock(at, n) == 0 ? 0 : errno; }));
}

void Heap::unlock_all() {
  if (views_ != nullptr && !is_child_) unlock(views_->address(), views_->size_bytes());
}

void Heap::undo_locks() {
  if (views_ == nullptr || is_child_) return;
  const Inside inside;
  static_cast<void>(views_->for_each(
      0, views_->size_bytes(),
      [this](View& view, uint64_t, uint64_t) {
        views_->cache().frames->unlock(
            {view.address, view.offset, view.mapped_bytes(), view.is_writable, 0});
        return 0;
      },
      [](uint64_t, uint64_t) { return 0; }));
}

}  // namespace outcore::preload
