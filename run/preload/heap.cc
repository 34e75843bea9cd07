#include "run/preload/heap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "run/preload/deadly_signals.h"
#include "run/preload/door.h"
#include "run/preload/later_writes.h"
#include "run/preload/own_heap.h"
#include "run/preload/own_memory.h"
#include "run/preload/real.h"
#include "run/preload/settings.h"
#include "run/preload/words.h"

namespace outcore::preload {

using base::kSystemPage;
using base::round_up;

constinit std::atomic<uint64_t> Heap::bytes_min_{UINT64_MAX};
constinit std::atomic<uint64_t> Heap::low_{0};
constinit std::atomic<uint64_t> Heap::span_{0};

namespace {

constexpr uint64_t kBytesMost = uint64_t{1} << 46;  // of one block

// Says what was done wrong, and ends the program as the C library does. Allocates nothing.
[[noreturn]] void refuse(const char* call, const char* what) {
  const char* const text[] = {"outcore: ", call, "(): ", what, "\n"};
  for (const char* part : text) say_raw(part, std::strlen(part));
  real().abort();
  __builtin_unreachable();
}

}  // namespace

Heap& Heap::instance() {
  static Heap* const heap = new Heap;  // used until the process ends
  return *heap;
}

void Heap::prepare() {
  const Settings& s = settings();
  if (s.alloc_bytes == 0 || !s.complaint.empty()) return;
  std::string why;
  if (!s.allows_aio && !refuse_later_writes(&why)) {
    say(why +
        ", and would write into memory of --alloc behind our back: allocations stay with the "
        "C library; --allow-aio if the program never does");
    return;
  }
  if (are_later_writes_refused() && s.is_explaining && (s.root == 0 || s.root == ::getpid()))
    say("under --alloc io_uring and aio are refused (ENOSYS), as the kernel would write into "
        "memory "
        "that is evicted; --allow-aio permits them");
  static_cast<void>(instance());
  static_cast<void>(is_another_heap_there());
  bytes_min_.store(std::max(s.alloc_bytes, kSystemPage), std::memory_order_release);
}

void Heap::retire() {
  if (!is_used() || instance().is_child_) return;
  const Inside inside;
  instance().views_->store().retire();
}

bool Heap::start() {
  if (!is_started_.load(std::memory_order_acquire)) {
    const Inside inside;
    const os::Locked locked(starting_);
    if (!is_started_.load(std::memory_order_relaxed)) start_once();
    is_started_.store(true, std::memory_order_release);
  }
  return views_ != nullptr && !is_child_;
}

void Heap::lock_start() { instance().starting_.lock(); }
void Heap::unlock_start() { instance().starting_.unlock(); }

// REQUIRES: `starting_`.
void Heap::start_once() {
  OC_CHECK(views_ == nullptr);
  std::string why;
  const std::shared_ptr<Runtime::Impl> runtime = Door::instance().runtime_for_heap(&why);
  if (runtime != nullptr) {
    Result<std::unique_ptr<HeapViews>> views = HeapViews::make(runtime);
    if (views)
      views_ = std::move(views).value();
    else
      say(views.message() + "; allocations stay with the C library");
  }
  if (views_ == nullptr) {
    close();
    return;
  }
  free_.add(0, views_->size_bytes());
  Door::include(views_->address(), views_->size_bytes());
  low_.store(reinterpret_cast<uint64_t>(views_->address()));
  span_.store(views_->size_bytes(), std::memory_order_release);
  // Space on servers is freed even if a signal ends the program: others may wait for it.
  if (views_->store().is_far()) DeadlySignals::take_over();
}

// REQUIRES, here and below, unless a function makes one itself: the caller has an Inside.
void Heap::add_live(int64_t bytes) {
  OC_ASSERT(bytes >= 0 || live_bytes_ >= static_cast<uint64_t>(-bytes));
  live_bytes_ += static_cast<uint64_t>(bytes);
  live_bytes_max_ = std::max(live_bytes_max_, live_bytes_);
}

int Heap::back(uint64_t offset, uint64_t bytes) {
  OC_ASSERT(bytes != 0 && offset + bytes <= views_->size_bytes());
  if (!views_->show(offset + round_up(bytes, page_bytes())).ok()) return ENOMEM;
  if (views_->store().promise(offset, bytes) == 0) return 0;
  trim();  // free ranges still have some space
  if (views_->store().promise(offset, bytes) == 0) return 0;
  tell_refusal(bytes);
  return ENOMEM;
}

void Heap::trim() {
  std::vector<base::RangeSet::Range> all;
  {
    const os::Locked locked(lock_);
    all = free_.all_in(0, views_->size_bytes());
    free_.remove(0, views_->size_bytes());  // so nobody allocates them meanwhile
  }
  for (const auto& r : all) views_->store().withdraw(r.first, r.count);
  const os::Locked locked(lock_);
  for (const auto& r : all) free_.add(r.first, r.count);
}

int Heap::take(uint64_t bytes, uint64_t room, uint64_t alignment, uint64_t* offset) {
  {
    const os::Locked locked(lock_);
    const auto found = free_.take(room, std::max(alignment, page_bytes()));
    if (!found) return ENOMEM;
    *offset = *found;
  }
  const int error = back(*offset, bytes);
  if (error != 0) {
    const os::Locked locked(lock_);
    free_.add(*offset, room);
  }
  return error;
}

void Heap::put(uint64_t offset, const Block& block) {
  OC_CHECK(block.bytes != 0 && block.bytes <= block.room);
  const os::Locked locked(lock_);
  OC_ASSERT(!blocks_.contains(offset));
  blocks_[offset] = block;
  add_live(static_cast<int64_t>(block.bytes));
  ++allocations_;
}

// Fails unless enough memory of our own is left to free the block later.
void* Heap::add(uint64_t bytes, uint64_t room, uint64_t alignment, Kind kind) {
  uint64_t offset = 0;
  if (!OwnMemory::has_room(2 * OwnMemory::kCallBytes)) return errno = ENOMEM, nullptr;
  bytes = round_up(std::max<uint64_t>(bytes, 1), kSystemPage);
  room = round_up(std::max(room, bytes), page_bytes());
  OC_ASSERT(bytes <= room && room % page_bytes() == 0);
  const int error = take(bytes, room, alignment, &offset);
  if (error != 0) return errno = error, nullptr;
  put(offset, {bytes, room, kind});
  return views_->address() + offset;
}

void* Heap::allocate(size_t bytes, size_t alignment, bool* is_available) {
  *is_available = start();
  if (!*is_available) return nullptr;
  if (bytes > kBytesMost || alignment > kBytesMost) return errno = ENOMEM, nullptr;
  const Inside inside;
  return add(bytes, bytes, alignment, Kind::kAllocation);
}

// Once: a program that can do with less may ask again and again.
void Heap::tell_refusal(uint64_t bytes) {
  if (has_told_refusal_.exchange(true)) return;
  const HeapStore& store = views_->store();
  const std::string place = store.is_far() ? store.uri() : "scratch space in " + store.folder();
  say("allocate " + base::format_bytes(bytes) + ": no room on " + place + ", which has " +
      base::format_bytes(store.free_bytes()) +
      " free: the program is refused the memory, as where there is none; name a larger place by "
      "--store");
}

Heap::Block Heap::block_of(void* p, const char* call) {
  const os::Locked locked(lock_);
  const auto at = blocks_.find(offset_of(p));
  if (at == blocks_.end() || at->second.kind != Kind::kAllocation)
    refuse(call, "invalid pointer, or freed already");
  return at->second;
}

void Heap::free(void* p) noexcept {
  const Inside inside;
  if (is_child_) return free_childs(p);
  Range range{offset_of(p), 0};
  {
    const os::Locked locked(lock_);
    const auto at = blocks_.find(range.from);
    if (at == blocks_.end() || at->second.kind != Kind::kAllocation)
      refuse("free", "invalid pointer, or freed already");
    range.to = range.from + at->second.room;
    add_live(-static_cast<int64_t>(at->second.bytes));
    blocks_.erase(at);
  }
  try {
    release(range);
  } catch (const std::bad_alloc&) {
  }
}

// Discards whole pages of ours, and undoes the program's mlock on them. 0 or an errno.
int Heap::empty(uint64_t from, uint64_t to) {
  if (from >= to) return 0;
  static_cast<void>(pin(from, to, false));
  return views_->discard(from, to);
}

// A part is never used again if it is the kernel's by now, or cannot be made writable and empty.
void Heap::release(const Range& range) {
  constexpr uint64_t kKeptBytesMax = uint64_t{256} << 20;  // of space that no block needs
  if (range.from >= range.to) return;
  std::vector<Range> ours;
  static_cast<void>(views_->for_each(
      range.from, range.to,
      [&](region::View&, uint64_t from, uint64_t to) {
        return ours.push_back({from, to}), 0;
      },
      [&](uint64_t from, uint64_t to) {
        static_cast<void>(os::make_inaccessible(views_->address() + from, to - from));
        return 0;
      }));
  for (const Range& r : ours) {
    OC_ASSERT(r.from % page_bytes() == 0 && r.to % page_bytes() == 0);
    if (views_->protect(r.from, r.to, PROT_READ | PROT_WRITE) != 0 || empty(r.from, r.to) != 0)
      continue;
    bool is_too_much = false;
    {
      const os::Locked locked(lock_);
      is_too_much = views_->store().reserved_bytes() > live_bytes_ + kKeptBytesMax;
    }
    if (is_too_much) views_->store().withdraw(r.from, r.to - r.from);
    const os::Locked locked(lock_);
    free_.add(r.from, r.to - r.from);
  }
}

// Gives the block room for this many bytes, if the addresses behind it are free.
bool Heap::grow_room(uint64_t offset, uint64_t bytes) {
  if (!OwnMemory::has_room(OwnMemory::kCallBytes)) return false;
  const os::Locked locked(lock_);
  Block& block = blocks_[offset];
  if (bytes <= block.room) return true;
  const uint64_t room = round_up(bytes, page_bytes());
  if (room > views_->size_bytes() || !free_.take_at(offset + block.room, room - block.room))
    return false;
  block.room = room;
  return true;
}

void* Heap::resize(void* p, size_t size) {
  if (is_child_) return errno = ENOMEM, nullptr;  // the store and the views are the parent's
  if (size > kBytesMost) return errno = ENOMEM, nullptr;
  const Inside inside;
  const uint64_t offset = offset_of(p);
  const Block block = block_of(p, "realloc");
  const uint64_t bytes = round_up(std::max<size_t>(size, 1), kSystemPage);
  if (bytes > block.bytes) {
    if (!grow_room(offset, bytes)) return errno = ENOMEM, nullptr;
    if (const int error = back(offset + block.bytes, bytes - block.bytes); error != 0)
      return errno = error, nullptr;
  } else if (bytes < block.bytes) {
    const uint64_t from = round_up(offset + bytes, page_bytes());
    const uint64_t to = round_up(offset + block.bytes, page_bytes());
    if (empty(from, to) != 0) return p;  // the block stays as large as it is
  }
  const os::Locked locked(lock_);
  blocks_[offset].bytes = bytes;
  add_live(static_cast<int64_t>(bytes) - static_cast<int64_t>(block.bytes));
  return p;
}

// A block that grows once will probably grow again, so it gets twice the room: addresses cost
// nothing.
void* Heap::move(void* p, size_t size) {
  if (is_child_) return errno = ENOMEM, nullptr;
  if (size > kBytesMost) return errno = ENOMEM, nullptr;
  uint64_t bytes = 0;
  void* to = nullptr;
  {
    const Inside inside;
    bytes = block_of(p, "realloc").bytes;
    to = add(size, uint64_t{2} * size, 1, Kind::kAllocation);
    if (to == nullptr) to = add(size, size, 1, Kind::kAllocation);
    if (to == nullptr) tell_refusal(size);
  }
  if (to == nullptr) return nullptr;
  std::memcpy(to, p, std::min<uint64_t>(bytes, size));
  free(p);
  return to;
}

size_t Heap::usable_bytes(void* p) {
  const Inside inside;
  return block_of(p, "malloc_usable_size").bytes;
}

void Heap::add_to(Report& report) {
  if (views_ == nullptr || is_child_) return;
  FileReport f;
  {
    const os::Locked locked(lock_);
    report.allocations = allocations_;
    report.alloc_bytes_max = live_bytes_max_;
    f.mapped_bytes = live_bytes_;
    f.file_bytes = live_bytes_max_;
    if (refused_ != 0)
      report.not_taken.push_back(
          {"(anonymous mapping)", "no room on scratch space", refused_bytes_max_, refused_});
  }
  const paging::PageCache& cache = views_->cache();
  f.path = "(allocations)";
  f.remark = views_->store().uri();
  if (const std::string remark = views_->store().remark(); !remark.empty())
    f.remark += ": " + remark;
  f.counters = cache.counters.sum();
  if (report.delivery.empty())
    report.delivery = cache.delivery == Delivery::kMessages   ? "messages"
                      : cache.delivery == Delivery::kInThread ? "in-thread"
                                                              : "mprotect";
  report.files.push_back(f);
}

}  // namespace outcore::preload
