// View: one mapping of a space's bytes at a range of addresses. A region is a view with an owner.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/address_space.h"
#include "core/os/frames.h"
#include "outcore/options.h"

namespace outcore::region {

struct View {
  std::byte* address = nullptr;
  uint64_t offset = 0;  // of its first byte in the space (which is the offset in the store)
  std::atomic<uint64_t> size_bytes{0};  // grows only
  uint64_t reserved_bytes = 0;          // address space that is kept for it
  uint64_t page_bytes = 0;
  std::atomic<bool> is_writable{false};
  // A door's: the program has taken all access away (mprotect), so a touch is not ours to answer.
  std::atomic<bool> is_closed{false};
  // Others are in its place, or it is not ready to take another's: touches through it come again.
  std::atomic<bool> is_replaced{false};
  OnError on_error = OnError::kSignal;
  std::atomic<Advice> advice{Advice::kNormal};  // normal, random or sequential
  // In a forked child: a region of the parent, of which only a placeholder is there.
  std::atomic<bool> is_inherited{false};
  void* space = nullptr;  // paging::Space
  // Threads that are answering a fault of this view. Unmap waits until there is none.
  std::atomic<uint32_t> users{0};
  // A bit a page: its addresses may show bytes (only for frames that several views share).
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

  // The part of the page that this view shows; empty (size 0) if none.
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
