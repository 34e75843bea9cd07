// What a program does to memory of the heap with mmap() and similar calls. See heap.h.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/address_space.h"
#include "run/preload/door.h"
#include "run/preload/heap.h"
#include "run/preload/own_heap.h"
#include "run/preload/own_memory.h"
#include "run/preload/real.h"

namespace outcore::preload {

using base::kSystemPage;
using base::round_down;
using base::round_up;
using region::View;

namespace {

// The mapping is anonymous and private, and has no property that only the kernel can give it.
bool is_plain(int flags) {
  constexpr int kNeeded = MAP_PRIVATE | MAP_ANONYMOUS;
  return (flags & kNeeded) == kNeeded &&
         (flags & ~(kNeeded | MAP_NORESERVE | MAP_POPULATE | MAP_FIXED)) == 0;
}

bool is_aligned(const std::byte* address) {
  return reinterpret_cast<uint64_t>(address) % kSystemPage == 0;
}

// A file that was taken may be mapped there.
int unmap_kernels(std::byte* address, uint64_t bytes) {
  const auto hold = [](std::byte* p, uint64_t n) {
    static_cast<void>(os::make_inaccessible(p, n));
  };
  if (const int error = Door::instance().release(address, bytes, hold); error != 0) return error;
  return -os::make_inaccessible(address, bytes);
}

}  // namespace

// A mapping for which the program wishes an address is left to the kernel.
bool Heap::wants_mapping(const void* address, size_t bytes, int protection, int flags,
                         const void* caller) {
  return wants(bytes) && address == nullptr && protection == kHeapProtection && is_plain(flags) &&
         (flags & MAP_FIXED) == 0 && !is_inside() && !is_code_of_another_heap(caller);
}

void* Heap::map(size_t bytes) {
  if (!start()) return nullptr;
  const Inside inside;
  const int saved_errno = errno;
  void* p = add(bytes, bytes, 1, Kind::kMapping, nullptr);
  if (p != nullptr) return p;
  errno = saved_errno;
  const os::Locked locked(lock_);
  ++refused_;
  refused_bytes_max_ = std::max<uint64_t>(refused_bytes_max_, bytes);
  return nullptr;
}

// Calls ours(from, to) for what lies in the heap's addresses, others(address, bytes) for the rest.
int Heap::on_parts(const std::byte* address, size_t bytes,
                   const std::function<int(uint64_t, uint64_t)>& ours,
                   const std::function<int(std::byte*, size_t)>& others) {
  OC_CHECK(views_ != nullptr);
  auto* const begin = const_cast<std::byte*>(address);
  std::byte* const end = begin + bytes;
  std::byte* const low = views_->address();
  std::byte* const high = low + views_->size_bytes();
  int result = 0;
  if (begin < low) result = others(begin, static_cast<size_t>(std::min(end, low) - begin));
  if (result == 0 && begin < high && end > low)
    result = ours(offset_of(std::max(begin, low)), offset_of(std::min(end, high)));
  if (result == 0 && end > high) {
    std::byte* const from = std::max(begin, high);
    result = others(from, static_cast<size_t>(end - from));
  }
  return result;
}

// Returns the whole pages of ours in which no block is any more, now that [from, to) belongs to
// none. REQUIRES, here and in the next three functions: the lock.
Heap::Range Heap::pages_in(uint64_t from, uint64_t to) {
  OC_ASSERT(from <= to);
  const auto is_any_in = [this](uint64_t a, uint64_t b) {
    auto at = blocks_.lower_bound(b);
    if (at == blocks_.begin()) return false;
    --at;
    return at->first + at->second.room > a;
  };
  uint64_t first = round_down(from, page_bytes()), last = round_up(to, page_bytes());
  if (first < from && is_any_in(first, from)) first += page_bytes();
  if (last > to && is_any_in(to, last)) last -= page_bytes();
  return {first, std::max(first, last)};
}

// Removes the range from all mappings.
std::vector<Heap::Gone> Heap::cut_blocks(uint64_t from, uint64_t to) {
  OC_ASSERT(from <= to);
  std::vector<Gone> gone;
  auto at = blocks_.upper_bound(from);
  if (at != blocks_.begin()) --at;
  while (at != blocks_.end() && at->first < to) {
    const auto [start, block] = *at;
    const uint64_t end = start + block.bytes, room_end = start + block.room;
    if (block.kind != Kind::kMapping || end <= from) {
      ++at;
      continue;
    }
    at = blocks_.erase(at);
    const uint64_t a = std::max(from, start), b = std::min(to, end);
    OC_CHECK(a < b && end <= room_end);
    if (start < a) blocks_[start] = {a - start, a - start, Kind::kMapping};
    if (b < end) at = std::next(blocks_.insert({b, {end - b, room_end - b, block.kind}}).first);
    add_live(-static_cast<int64_t>(b - a));
    const Range own{a, b < end ? b : room_end};
    gone.push_back({pages_in(own.from, own.to), own});
  }
  return gone;
}

// Whether all of the range belongs to mappings.
bool Heap::is_mapped(uint64_t from, uint64_t to) {
  auto at = blocks_.upper_bound(from);
  if (at != blocks_.begin()) --at;
  for (; at != blocks_.end() && at->first <= from && from < to; ++at) {
    if (at->second.kind != Kind::kMapping || at->first + at->second.bytes <= from) return false;
    from = at->first + at->second.bytes;
  }
  return from >= to;
}

// Whether some of the range is free.
bool Heap::is_free(uint64_t from, uint64_t to) { return free_.has_any(from, to); }

// What lies behind `to` of what is gone.
void Heap::release_behind(uint64_t to, const std::vector<Gone>& gone) {
  for (const auto& [pages, own] : gone)
    release({std::max(pages.from, to), pages.to}, {std::max(own.from, to), own.to});
}

// The kernel's parts first: what is released may be another thread's at once.
int Heap::unmap_ours(uint64_t from, uint64_t to) {
  OC_ASSERT(from < to);
  const int error = views_->for_each(
      from, to, [](View&, uint64_t, uint64_t) { return 0; },
      [&](uint64_t a, uint64_t b) { return unmap_kernels(views_->address() + a, b - a); });
  if (error != 0) return error;
  std::vector<Gone> gone;
  {
    const os::Locked locked(lock_);
    gone = cut_blocks(from, to);
  }
  for (const auto& [pages, own] : gone) release(pages, own);
  return 0;
}

int Heap::unmap(std::byte* address, size_t bytes) {
  if (!is_aligned(address) || bytes == 0) return EINVAL;
  const Inside inside;
  if (!OwnMemory::has_room(OwnMemory::kCallBytes)) return ENOMEM;
  return on_parts(
      address, round_up(bytes, kSystemPage),
      [this](uint64_t from, uint64_t to) {
        return is_child_ ? unmap_childs(from, to) : unmap_ours(from, to);
      },
      [](std::byte* at, size_t n) {
        const int error = Door::instance().release(at, n, [](std::byte* p, uint64_t m) {
          static_cast<void>(os::make_inaccessible(p, m));
        });
        return error != 0 ? error : real().munmap(at, n) == 0 ? 0 : errno;
      });
}

// Makes the range one mapping, if it consists only of mappings and free addresses.
bool Heap::take_over(uint64_t from, uint64_t to) {
  if (from % page_bytes() != 0 || to % page_bytes() != 0) return false;
  std::vector<Gone> gone;
  {
    const os::Locked locked(lock_);
    uint64_t at = from;
    for (const Range& r : free_.all_in(from, to)) {
      if (!is_mapped(at, r.from)) return false;
      at = r.to;
    }
    if (!is_mapped(at, to)) return false;
    free_.remove(from, to);  // map_over() empties all of it
    gone = cut_blocks(from, to);
    OC_ASSERT(!blocks_.contains(from));
    blocks_[from] = {to - from, to - from, Kind::kMapping};
    add_live(static_cast<int64_t>(to - from));
  }
  release_behind(to, gone);
  return true;
}

bool Heap::map_over(std::byte* address, size_t bytes, int protection, int flags) {
  const bool is_ours = has(address) && has(address + bytes - 1);
  if (is_child_ || !is_ours || !is_aligned(address) || !is_plain(flags) ||
      (protection & ~kHeapProtection) != 0 || !OwnMemory::has_room(OwnMemory::kCallBytes))
    return false;
  const Inside inside;
  const uint64_t from = offset_of(address), to = from + round_up(bytes, kSystemPage);
  // If a part of the range is the kernel's, the kernel maps all of it.
  const auto refuse = [](uint64_t, uint64_t) { return EBUSY; };
  const auto accept = [](View&, uint64_t, uint64_t) { return 0; };
  if (views_->for_each(from, to, accept, refuse) != 0 || !take_over(from, to)) return false;
  static_cast<void>(pin(from, to, false));
  return back(from, to - from) == 0 && views_->protect(from, to, kHeapProtection) == 0 &&
         empty(from, to) == 0 && views_->protect(from, to, protection) == 0;
}

int Heap::give_way(std::byte* address, size_t bytes) {
  if (!is_aligned(address) || bytes == 0) return EINVAL;
  const Inside inside;
  if (!OwnMemory::has_room(OwnMemory::kCallBytes)) return ENOMEM;
  const auto give = [this](uint64_t from, uint64_t to) {
    if (is_child_) return unmap_childs(from, to);
    // A page of ours that the range cuts becomes the kernel's as a whole, with its bytes.
    for (const uint64_t edge : {from, to})
      if (const uint64_t page = round_down(edge, page_bytes()), end = page + page_bytes();
          page != edge)
        if (const int error =
                while_unpinned(page, end, [&] { return views_->hand_over(page, end); });
            error != 0)
          return error;
    if (const uint64_t a = round_up(from, page_bytes()), b = round_down(to, page_bytes()); a < b)
      static_cast<void>(pin(a, b, false));
    forget_pins(from, to);
    std::vector<Gone> gone;
    {
      const os::Locked locked(lock_);
      free_.remove(from, to);
      gone = cut_blocks(from, to);
    }
    release_behind(to, gone);
    return views_->give_to_kernel(from, to, [](std::byte* place, uint64_t n) {
      static_cast<void>(os::make_inaccessible(place, n));
    });
  };
  return on_parts(address, round_up(bytes, kSystemPage), give,
                  [](std::byte*, size_t) { return 0; });
}

int Heap::protect(std::byte* address, size_t bytes, int protection) {
  if (!is_aligned(address)) return EINVAL;
  if (bytes == 0) return 0;
  const Inside inside;
  if (!OwnMemory::has_room(OwnMemory::kCallBytes)) return ENOMEM;
  return on_parts(
      address, round_up(bytes, kSystemPage),
      [&](uint64_t from, uint64_t to) {
        if (is_child_) return protect_childs(from, to, protection);
        {
          const os::Locked locked(lock_);
          if (is_free(from, to)) return ENOMEM;
        }
        return while_unpinned(round_down(from, page_bytes()), round_up(to, page_bytes()),
                              [&] { return views_->protect(from, to, protection); });
      },
      [&](std::byte* at, size_t n) { return Door::instance().protect(at, n, protection); });
}

// Makes the place to which a mapping moves: elsewhere in the heap, with room to grow further; or,
// if the program names an address, memory of the kernel there.
std::byte* Heap::place_for(uint64_t bytes, std::byte* fixed) {
  void* p = nullptr;
  if (fixed == nullptr) {
    p = add(bytes, 2 * bytes, 1, Kind::kMapping, nullptr);
    if (p == nullptr) p = add(bytes, bytes, 1, Kind::kMapping, nullptr);
  } else {
    if (const int error = give_way(fixed, bytes); error != 0) return errno = error, nullptr;
    p = real().mmap(fixed, bytes, kHeapProtection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (p == MAP_FAILED) p = nullptr;
  }
  return static_cast<std::byte*>(p);
}

void* Heap::move_mapping(uint64_t from, uint64_t to, uint64_t bytes, int flags, std::byte* fixed) {
  std::byte* place = nullptr;
  int protection = kHeapProtection;
  {
    const Inside inside;
    protection = views_->protection_in(from, to);
    if (protection < 0) return errno = EFAULT, MAP_FAILED;  // as what are several mappings
    place = place_for(bytes, fixed);
    if (place == nullptr) return MAP_FAILED;
    if (protection == PROT_NONE && views_->protect(from, to, PROT_READ) != 0) {
      unmap(place, bytes);
      return errno = ENOMEM, MAP_FAILED;
    }
  }
  std::memcpy(place, views_->address() + from, std::min(to - from, bytes));
  const Inside inside;
  if (protection != kHeapProtection) {
    if (fixed == nullptr)
      static_cast<void>(views_->protect(offset_of(place), offset_of(place) + bytes, protection));
    else
      real().mprotect(place, bytes, protection);
  }
  if ((flags & MREMAP_DONTUNMAP) != 0) {
    static_cast<void>(pin(from, to, false));
    static_cast<void>(advise(views_->address() + from, to - from, MADV_DONTNEED));
    static_cast<void>(views_->protect(from, to, protection));
  } else {
    static_cast<void>(unmap_ours(from, to));
  }
  return place;
}

// Whether all of the range, at addresses of the heap, is the kernel's.
bool Heap::is_kernels(uint64_t from, uint64_t to) {
  return views_->for_each(
             from, to, [](View&, uint64_t, uint64_t) { return EBUSY; },
             [](uint64_t, uint64_t) { return 0; }) == 0;
}

// The addresses that the mapping leaves stay reserved for the heap.
void* Heap::move_kernels(uint64_t from, uint64_t to, uint64_t bytes, int flags, std::byte* fixed) {
  OC_ASSERT(from < to && bytes != 0);
  std::byte* const address = views_->address() + from;
  void* const moved = real().mremap(address, to - from, bytes, flags, fixed);
  if (moved == MAP_FAILED) return MAP_FAILED;
  const int saved_errno = errno;
  const uint64_t kept = (flags & MREMAP_DONTUNMAP) != 0 ? to - from : moved == address ? bytes : 0;
  if (kept < to - from)
    real().mmap(address + kept, to - from - kept, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (moved != address) forget_pins(from, to);
  if (kept < to - from) {
    std::vector<Gone> gone;
    {
      const os::Locked locked(lock_);
      gone = cut_blocks(from + kept, to);
    }
    release_behind(to, gone);
  }
  errno = saved_errno;
  return moved;
}

void* Heap::remap(std::byte* address, size_t old_bytes, size_t new_bytes, int flags,
                  std::byte* fixed) {
  constexpr int kKnown = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  const auto refuse = [](int error) { return errno = error, MAP_FAILED; };
  const bool may_move = (flags & MREMAP_MAYMOVE) != 0, is_fixed = (flags & MREMAP_FIXED) != 0;
  if (!is_aligned(address) || old_bytes == 0 || new_bytes == 0 || (flags & ~kKnown) != 0 ||
      (!may_move && flags != 0) || (is_fixed && !is_aligned(fixed)))
    return refuse(EINVAL);
  if (new_bytes > views_->size_bytes()) return refuse(ENOMEM);
  const uint64_t from = offset_of(address), to = from + round_up(old_bytes, kSystemPage);
  new_bytes = round_up(new_bytes, kSystemPage);
  if ((flags & MREMAP_DONTUNMAP) != 0 && new_bytes != to - from) return refuse(EINVAL);
  if (is_fixed && fixed < address + (to - from) && address < fixed + new_bytes)
    return refuse(EINVAL);
  {
    const Inside inside;
    if (!OwnMemory::has_room(OwnMemory::kCallBytes)) return refuse(ENOMEM);
    if (is_child_) return remap_childs(from, to, new_bytes, flags);
    bool is_a_mapping = false;
    {
      const os::Locked locked(lock_);
      is_a_mapping = is_mapped(from, to);
    }
    if (is_kernels(from, to)) return move_kernels(from, to, new_bytes, flags, fixed);
    if (!is_a_mapping) return refuse(EFAULT);
    if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) == 0) {
      if (new_bytes < to - from)
        if (const int error = unmap_ours(from + new_bytes, to); error != 0) return refuse(error);
      if (new_bytes <= to - from || grow(to, from + new_bytes, Kind::kMapping)) return address;
      if (!may_move) return refuse(ENOMEM);
    }
  }
  return move_mapping(from, to, new_bytes, flags, is_fixed ? fixed : nullptr);
}

}  // namespace outcore::preload
