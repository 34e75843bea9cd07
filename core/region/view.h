// View: one mapping of bytes of a cache at a range of addresses. A Region owns a view. Fields that
// can change are atomic; the fault path reads them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/address_space.h"
#include "core/os/frames.h"
#include "outcore/options.h"

namespace outcore::paging {
struct PageCache;  // a higher room's, which alone looks inside
}  // namespace outcore::paging

namespace outcore::region {

struct View {
  std::byte* address = nullptr;
  uint64_t offset = 0;                  // of its first byte, in the cache and in the store
  std::atomic<uint64_t> size_bytes{0};  // grows only
  uint64_t reserved_bytes = 0;          // addresses reserved for it
  uint64_t page_bytes = 0;
  std::atomic<bool> is_writable{false};
  // For `outcore run`: the program has removed all access (mprotect), so faults are not Outcore's.
  std::atomic<bool> is_closed{false};
  // Other views take its place, or it is about to take another's: faults are repeated.
  std::atomic<bool> is_replaced{false};
  OnError on_error = OnError::kSignal;
  std::atomic<Advice> advice{Advice::kNormal};  // normal, random or sequential
  // In a forked child: a region of the parent, which is only a placeholder here.
  std::atomic<bool> is_inherited{false};
  paging::PageCache* cache = nullptr;  // whose pages it shows
  // The region that a forked child may have of its own in place of this view (Inheritance), which
  // alone looks inside; nullptr: it may not.
  std::atomic<void*> owner{nullptr};
  // Number of threads that are answering a fault of this view. Unmapping waits until it is 0.
  std::atomic<uint32_t> users{0};
  // One bit a page: its addresses may show bytes. Only for frames that views can share.
  os::Table<std::atomic<uint64_t>> shown;

  uint64_t mapped_bytes() const {
    return base::round_up(size_bytes.load(std::memory_order_acquire), base::kSystemPage);
  }
  bool contains(const std::byte* p) const { return p >= address && p < address + mapped_bytes(); }
  uint64_t page_of(const std::byte* p) const {
    OC_ASSERT(p >= address);
    OC_ASSERT(page_bytes != 0);
    return (offset + static_cast<uint64_t>(p - address)) / page_bytes;
  }
  uint64_t first_page() const { return offset / page_bytes; }
  uint64_t end_page() const {
    const uint64_t bytes = mapped_bytes();
    return bytes == 0 ? first_page() : (offset + bytes + page_bytes - 1) / page_bytes;
  }

  // The part of the page that this view shows; size 0 if none.
  os::Piece piece_of(uint64_t page) const { return pieces_of(page, page + 1); }
  // The same for neighbouring pages [first, end).
  os::Piece pieces_of(uint64_t first, uint64_t end) const {
    OC_ASSERT(first < end);
    const uint64_t from = first * page_bytes > offset ? first * page_bytes : offset;
    const uint64_t view_end = offset + mapped_bytes();
    const uint64_t to = end * page_bytes < view_end ? end * page_bytes : view_end;
    if (from >= to) return {};
    return {address + (from - offset), from, to - from, is_writable.load(std::memory_order_relaxed),
            static_cast<uint32_t>((from - first * page_bytes) / base::kSystemPage)};
  }

  std::byte* system_page_at(std::byte* p) const {
    OC_ASSERT(p >= address);
    return address + base::round_down(static_cast<uint64_t>(p - address), base::kSystemPage);
  }

  bool is_shown(uint64_t page) const {
    OC_ASSERT(page >= first_page());
    const uint64_t i = page - first_page();
    return (shown[i / 64].load(std::memory_order_acquire) >> (i % 64) & 1) != 0;
  }
  void set_shown(uint64_t page, bool on) {
    OC_ASSERT(page >= first_page());
    const uint64_t i = page - first_page(), bit = uint64_t{1} << (i % 64);
    if (on)
      shown[i / 64].fetch_or(bit, std::memory_order_acq_rel);
    else
      shown[i / 64].fetch_and(~bit, std::memory_order_acq_rel);
  }
};

}  // namespace outcore::region
