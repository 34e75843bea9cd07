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

int Heap::advise(std::byte* address, size_t bytes, int advice) {
  if (reinterpret_cast<uint64_t>(address) % kSystemPage != 0) return EINVAL;
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
        static_cast<void>(pin(from, to, false));
        return views_->hand_over(from, to);
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
      // Whole pages are discarded; parts of pages at both ends are zeroed.
      const uint64_t inner = std::min(round_up(from, bytes), to);
      const uint64_t inner_end = std::max(round_down(to, bytes), inner);
      if (advice == MADV_DONTNEED && inner > from)
        std::memset(views_->address() + from, 0, inner - from);
      if (advice == MADV_DONTNEED && to > inner_end)
        std::memset(views_->address() + inner_end, 0, to - inner_end);
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

// Pins what is not pinned yet, or unpins what is. 0 or an errno.
int Heap::pin(uint64_t from, uint64_t to, bool is_pin) {
  if (!is_pin && !has_pins_.load(std::memory_order_acquire)) return 0;
  const std::lock_guard<std::mutex> guard(pinning_);
  from = round_down(from, page_bytes());
  to = round_up(to, page_bytes());
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
  const auto change = [&](uint64_t a, uint64_t b, bool is_on) {
    return views_->for_each(
        a, b,
        [&](View& view, uint64_t x, uint64_t y) {
          const std::byte* address = views_->address() + x;
          paging::Engine& engine = views_->engine();
          const Status s =
              is_on ? engine.pin(view, address, y - x) : engine.unpin(view, address, y - x);
          return s.ok() ? 0 : s.code();
        },
        [&](uint64_t x, uint64_t y) {
          const std::byte* address = views_->address() + x;
          const int r = is_on ? real().mlock(address, y - x) : real().munlock(address, y - x);
          return r == 0 ? 0 : errno;
        });
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
