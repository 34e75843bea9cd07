#include "run/preload/heap_views.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/address_space.h"
#include "core/runtime/mapper.h"
#include "core/runtime/region_changes.h"
#include "run/preload/bounce.h"
#include "run/preload/door.h"
#include "run/preload/kernel_protection.h"
#include "run/preload/real.h"
#include "run/preload/settings.h"
#include "run/preload/stand_in_thread.h"

namespace outcore::preload {

using base::round_down;
using base::round_up;
using region::PageState;
using region::View;

namespace {

constexpr uint64_t kStepBytes = uint64_t{1} << 30;
// How many addresses are reserved: several times what the disk holds, as free ones lie in pieces.
constexpr uint64_t kAddressesMost = uint64_t{16} << 40, kAddressesLeast = uint64_t{64} << 30;
constexpr uint64_t kAddressesMin = uint64_t{64} << 20;  // under a limit
constexpr uint64_t kReadBytesMost = 1 << 20;

void* kernels_memory(uint64_t size_bytes) {
  return real().mmap(nullptr, size_bytes, kHeapProtection,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

}  // namespace

Result<std::unique_ptr<HeapViews>> HeapViews::make(const std::shared_ptr<Runtime::Impl>& runtime) {
  std::unique_ptr<HeapViews> views(new HeapViews);
  views->runtime_ = runtime;
  Result<std::shared_ptr<HeapStore>> store =
      HeapStore::open(settings().store, runtime->options.scratch_dir);
  if (!store) return store.error();
  views->store_ = std::move(store).value();
  if (Status s = views->reserve(); !s) return s.error();
  if (Status s = views->store_->cover(views->size_bytes_, runtime->options.page_bytes); !s)
    return s.error();
  MapOptions options;
  options.access = Access::kReadWrite;
  if (runtime->options.delivery == Delivery::kAuto && runtime->kernel.has_messages)
    options.delivery = Delivery::kMessages;
  const Runtime::Impl::Lent lent{views->address_, views->size_bytes_, views->size_bytes_};
  Result<std::unique_ptr<Region::Impl>> region =
      runtime->mapper->map(views->store_, views->store_->uri(), options, &lent);
  if (!region) {
    os::release_addresses(views->address_, views->size_bytes_);
    return region.error();
  }
  views->cache_ = region.value()->cache;
  views->cache_->is_of_addresses = true;
  if (views->cache_->delivery != Delivery::kMessages) set_needs_bounce();
  views->parts_[0] = {std::move(region).value(), views->size_bytes_, kHeapProtection};
  return views;
}

Status HeapViews::reserve() {
  const uint64_t alignment = std::max<uint64_t>(runtime_->options.page_bytes, uint64_t{2} << 20);
  const uint64_t wanted = std::min(store_->free_bytes(), kAddressesMost) * 4;
  uint64_t bytes = std::bit_ceil(std::clamp(wanted, kAddressesLeast, kAddressesMost));
  // Under a limit, addresses must be left for the tables, the threads and the program.
  if (rlimit limit; ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::clamp<uint64_t>(std::bit_floor(limit.rlim_cur / 4), kAddressesMin, bytes);
  for (;; bytes /= 2) {
    Result<std::byte*> address = os::reserve_addresses(bytes, alignment);
    if (address) {
      address_ = address.value();
      size_bytes_ = bytes;
      return {};
    }
    if (bytes / 2 < kAddressesMin) return address.error();
  }
}

Status HeapViews::show(uint64_t end) {
  const std::lock_guard<std::mutex> guard(changing_);
  if (end <= shown_bytes_) return {};
  const auto& [start, last] = *std::prev(parts_.end());
  OC_CHECK(last.end == size_bytes_);
  Status s;
  for (const uint64_t step : {kStepBytes, page_bytes()}) {
    const uint64_t target = std::min(round_up(end, step), size_bytes_);
    s = runtime_->changes->extend(*last.region, target - start, size_bytes_);
    if (s.ok()) shown_bytes_.store(target);
    if (s.ok()) break;
  }
  return s;
}

int HeapViews::stop(bool has_others) {
  runtime_->mapping.lock();
  is_halted_ = has_others;
  if (!has_others) return 0;
  const Status s = runtime_->engine->halt(*cache_);
  if (!s.ok()) runtime_->mapping.unlock();
  return s.code();
}

void HeapViews::resume() {
  if (is_halted_) runtime_->engine->resume(*cache_);
  runtime_->mapping.unlock();
}

int HeapViews::copy_to(int file, uint64_t end) {
  if (!is_halted_)
    if (const Status s = runtime_->engine->flush(*cache_, 0, end / page_bytes()); !s.ok())
      return s.code();
  return -store_->copy_to(file, end);
}

HeapViews::Parts::iterator HeapViews::part_at(uint64_t offset) {
  auto at = parts_.upper_bound(offset);
  if (at != parts_.begin() && std::prev(at)->second.end > offset) --at;
  OC_ASSERT(at == parts_.end() || at->second.end > offset);
  return at;
}

int HeapViews::for_each(uint64_t from, uint64_t to,
                        const std::function<int(View&, uint64_t, uint64_t)>& ours,
                        const std::function<int(uint64_t, uint64_t)>& kernels) {
  OC_ASSERT(from <= to && to <= size_bytes_);
  const std::lock_guard<std::mutex> guard(changing_);
  int result = 0;
  for (auto at = part_at(from); from < to && result == 0; ++at) {
    const uint64_t start = at == parts_.end() ? to : std::min(std::max(at->first, from), to);
    if (start > from) result = kernels(from, start);
    if (at == parts_.end()) break;
    from = std::min(at->second.end, to);
    if (start < from && result == 0) result = ours(*at->second.region->view, start, from);
  }
  return result;
}

bool HeapViews::is_protected_so(uint64_t from, uint64_t to, int protection) {
  for (auto at = part_at(from); at != parts_.end() && at->first < to; from = at->second.end, ++at)
    if (at->first > from || at->second.protection != protection) return false;
  return from >= to;
}

int HeapViews::protect(uint64_t from, uint64_t to, int protection) {
  OC_ASSERT(from % base::kSystemPage == 0 && to % base::kSystemPage == 0 && to <= size_bytes_);
  const std::lock_guard<std::mutex> guard(changing_);
  if (protection == PROT_WRITE) protection = kHeapProtection;  // the processor lets it be read, too
  if (is_protected_so(from, to, protection)) return 0;
  const uint64_t bytes = page_bytes();
  if ((protection & ~kHeapProtection) != 0 || from % bytes != 0 || to % bytes != 0) {
    if (const int error = copy_to_kernel(round_down(from, bytes), round_up(to, bytes)); error != 0)
      return error;
    return real().mprotect(address_ + from, to - from, protection) == 0 ? 0 : errno;
  }
  while (from < to) {
    const auto at = part_at(from);
    const uint64_t start = at == parts_.end() ? to : std::min(at->first, to);
    if (start > from) {  // this part is the kernel's
      if (const int error = Door::instance().protect(address_ + from, start - from, protection);
          error != 0)
        return error;
      from = start;
      continue;
    }
    if (at->second.protection == protection) {
      from = at->second.end;
      continue;
    }
    // The part is divided at an edge of the range, and looked at again.
    const uint64_t edge = at->first < from ? from : at->second.end > to ? to : 0;
    if (edge != 0) {
      if (const int error = divide(at, edge); error != 0) return error;
      continue;
    }
    if (const int error = set_protection(at->first, at->second, protection); error != 0)
      return error;
    from = at->second.end;
  }
  return 0;
}

int HeapViews::protection_at(uint64_t offset) {
  OC_ASSERT(offset < size_bytes_);
  const std::lock_guard<std::mutex> guard(changing_);
  const auto at = part_at(offset);
  return at == parts_.end() || at->first > offset ? -1 : at->second.protection;
}

int HeapViews::protection_in(uint64_t from, uint64_t to) {
  OC_ASSERT(from < to && to <= size_bytes_);
  int found = -1;
  std::vector<std::span<const std::byte>> others;
  const auto ours = [&](View& view, uint64_t, uint64_t) {
    const int own = view.is_closed ? PROT_NONE : view.is_writable ? kHeapProtection : PROT_READ;
    if (found >= 0 && found != own) return EFAULT;
    return found = own, 0;
  };
  const auto kernels = [&](uint64_t a, uint64_t b) {
    return others.emplace_back(address_ + a, b - a), 0;
  };
  if (for_each(from, to, ours, kernels) != 0) return -1;
  if (others.empty()) return found;
  const int theirs = kernel_protection(others);
  return found < 0 || found == theirs ? theirs : -1;
}

int HeapViews::divide(Parts::iterator part, uint64_t at) {
  OC_CHECK(at > part->first && at < part->second.end);
  std::unique_ptr<Region::Impl> right;
  const uint64_t from = at - part->first;
  if (const Status s = runtime_->changes->cut(*part->second.region, from, from, &right, [] {});
      !s.ok())
    return ENOMEM;
  parts_[at] = {std::move(right), part->second.end, part->second.protection};
  part->second.end = at;
  return 0;
}

int HeapViews::set_protection(uint64_t start, Part& part, int protection) {
  OC_ASSERT(part.region != nullptr && start < part.end);
  // With mprotect delivery, absent pages must stay inaccessible: so all pages are evicted, and a
  // fault brings each back with the protection of the view.
  const bool is_by_protection = cache_->delivery == Delivery::kMprotect;
  const auto tell = [&](bool is_readable, bool is_writable) -> Status {
    const int now = is_writable ? kHeapProtection : is_readable ? PROT_READ : PROT_NONE;
    if (is_by_protection || real().mprotect(address_ + start, part.end - start, now) == 0)
      return {};
    return Error{errno, "mprotect"};
  };
  Status s = runtime_->changes->protect(*part.region, protection != PROT_NONE,
                                        (protection & PROT_WRITE) != 0, tell);
  if (s.ok() && is_by_protection) {
    const View& view = *part.region->view;
    s = runtime_->engine->evict(*cache_, view.first_page(), view.end_page());
  }
  if (!s.ok()) return ENOMEM;
  part.protection = protection;
  return 0;
}

int HeapViews::hand_over(uint64_t from, uint64_t to) {
  const std::lock_guard<std::mutex> guard(changing_);
  return copy_to_kernel(from, to);
}

// What nobody has written takes no memory in the copy either: of a thread's stack little is used.
// REQUIRES: all pages are stored, and none is in memory.
Status HeapViews::read_written(std::byte* copy, uint64_t from, uint64_t to) {
  const uint64_t bytes = page_bytes();
  OC_ASSERT(from % bytes == 0 && to % bytes == 0);
  for (uint64_t at = from; at < to;) {
    uint64_t end = at;
    while (end < to && end - at < kReadBytesMost && !store_->is_untouched(end, bytes)) end += bytes;
    if (end == at) {
      at += bytes;
      continue;
    }
    if (const int error = store_->read(at, {copy + (at - from), end - at}); error != 0)
      return base::system_error(error, "read " + store_->uri());
    at = end;
  }
  return {};
}

// Makes what is shown of the range the kernel's, with its bytes. Other threads may use it: they
// wait, and find in the copy what they had written. If the caller's own stack is in the
// heap (a coroutine's), another thread does it, or the caller might wait for itself.
int HeapViews::copy_to_kernel(uint64_t from, uint64_t to) {
  const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  if (here - reinterpret_cast<uint64_t>(address_) >= size_bytes_)
    return copy_to_kernel_here(from, to);
  return on_stand_in_thread([this, from, to] { return copy_to_kernel_here(from, to); });
}

int HeapViews::copy_to_kernel_here(uint64_t from, uint64_t to) {
  OC_CHECK(from % page_bytes() == 0 && to % page_bytes() == 0);
  while (from < to) {
    const auto at = part_at(from);
    if (at == parts_.end() || at->first >= to) return 0;
    const uint64_t start = std::max(at->first, from), end = std::min(at->second.end, to);
    const int protection = at->second.protection;
    void* const copy = kernels_memory(end - start);
    if (copy == MAP_FAILED) return ENOMEM;
    const auto fill = [&]() -> Status {
      if (Status s = read_written(static_cast<std::byte*>(copy), start, end); !s) return s;
      if (real().mprotect(copy, end - start, protection) == 0) return {};
      return base::system_error(errno, "protect a copy");
    };
    // Refused if the process has nearly as many mappings as it may have: then nothing has changed.
    const auto move = [&]() -> Status {
      std::byte* const place = address_ + start;
      void* const moved =
          real().mremap(copy, end - start, end - start, MREMAP_MAYMOVE | MREMAP_FIXED, place);
      if (moved == place) return {};
      OC_CHECK(errno == ENOMEM);
      return Error{ENOMEM, "move a copy to its place"};
    };
    const int error = take_out(start, end, fill, move);
    if (error != 0) return real().munmap(copy, end - start), error;
    from = end;
  }
  return 0;
}

int HeapViews::give_to_kernel(uint64_t from, uint64_t to,
                              const std::function<void(std::byte*, uint64_t)>& place) {
  OC_CHECK(from <= to && to <= size_bytes_);
  const std::lock_guard<std::mutex> guard(changing_);
  while (from < to) {
    const auto at = part_at(from);
    const uint64_t start = at == parts_.end() ? to : std::min(std::max(at->first, from), to);
    if (start > from) place(address_ + from, start - from);
    if (start == to) return 0;
    const uint64_t end = std::min(at->second.end, to);
    static_cast<void>(discard(start, end));  // otherwise it would be written back
    const auto nothing = [] { return Status(); };
    const auto map = [&] { return place(address_ + start, end - start), Status(); };
    if (const int error = take_out(start, end, nothing, map); error != 0) return error;
    from = end;
  }
  return 0;
}

// `prepare` runs when all that was written there is stored, and `place` if it succeeds. The range
// is never used again, so its space in the store is free. REQUIRES: it lies in one part.
int HeapViews::take_out(uint64_t from, uint64_t to, base::FunctionRef<Status()> prepare,
                        base::FunctionRef<Status()> place) {
  auto at = part_at(from);
  OC_CHECK(at != parts_.end());
  OC_CHECK(at->first <= from && from < to && to <= at->second.end);
  if (from > at->first) {
    if (const int error = divide(at, from); error != 0) return error;
    ++at;
  }
  if (to < at->second.end)
    if (const int error = divide(at, to); error != 0) return error;
  OC_CHECK(at->first == from && at->second.end == to);
  if (!runtime_->changes->give(*at->second.region, prepare, place).ok()) return ENOMEM;
  parts_.erase(at);
  if (discard(from, to) == 0) store_->withdraw(from, to - from);
  return 0;
}

// Absent pages are forgotten in the store at once; the engine discards the others.
int HeapViews::discard(uint64_t from, uint64_t to) {
  const uint64_t bytes = page_bytes();
  OC_CHECK(from % bytes == 0 && to % bytes == 0);
  const std::lock_guard<std::mutex> guard(runtime_->mapping);  // not while a child's copy is made
  int result = 0;
  uint64_t resident = from;  // what is not forgotten yet begins here
  for (uint64_t at = from; at < to && result == 0; at += bytes) {
    if (!forget_if_absent(at)) continue;
    result = discard_resident(resident, at);
    resident = at + bytes;
  }
  return result != 0 ? result : discard_resident(resident, to);
}

void HeapViews::forget_absent(uint64_t from, uint64_t to) {
  const uint64_t bytes = page_bytes();
  OC_CHECK(from % bytes == 0 && to % bytes == 0);
  const std::lock_guard<std::mutex> guard(runtime_->mapping);
  for (uint64_t at = from; at < to; at += bytes)
    if (!forget_if_absent(at) && cache_->words[at / bytes].load().state() == PageState::kFailed)
      static_cast<void>(discard_resident(at, at + bytes));
}

// False: the page is not absent. REQUIRES: the lock of mappings.
bool HeapViews::forget_if_absent(uint64_t at) {
  const uint64_t bytes = page_bytes(), page = at / bytes;
  if (cache_->words[page].load().state() != PageState::kAbsent) return false;
  if (store_->is_untouched(at, bytes)) return true;
  if (!cache_->claim(page)) return false;
  store_->forget(at, bytes);
  cache_->abandon(page);
  return true;
}

int HeapViews::discard_resident(uint64_t from, uint64_t to) {
  if (from >= to) return 0;
  const Status s = runtime_->engine->discard(*cache_, from, to - from);
  return s.ok() ? 0 : s.code();
}

}  // namespace outcore::preload
