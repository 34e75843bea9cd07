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

void Heap::put(uint64_t offset, const Block& block) {
  OC_CHECK(block.bytes != 0 && block.bytes <= block.room);
  const os::Locked locked(lock_);
  OC_ASSERT(!blocks_.contains(offset));
  blocks_[offset] = block;
  add_live(static_cast<int64_t>(block.bytes));
  ++allocations_;
}

// Fails unless enough memory of our own is left to free the block later.
void* Heap::add(uint64_t bytes, uint64_t room, uint64_t alignment, Kind kind,
                std::vector<Range>* stale) {
  uint64_t offset = 0;
  if (!OwnMemory::has_room(2 * OwnMemory::kCallBytes)) return errno = ENOMEM, nullptr;
  bytes = round_up(std::max<uint64_t>(bytes, 1), kSystemPage);
  room = round_up(std::max(room, bytes), page_bytes());
  OC_ASSERT(bytes <= room && room % page_bytes() == 0);
  std::vector<Range> found;
  // Room to grow in holds nothing: it would be memory that nobody uses, and nobody gives back.
  const bool may_be_stale = stale != nullptr && room < bytes + page_bytes();
  const int error = take(bytes, room, alignment, &offset, may_be_stale, &found);
  if (error != 0) return errno = error, nullptr;
  if (may_be_stale) {
    for (const Range& r : found) views_->forget_absent(r.from, r.to);
    *stale = std::move(found);
  } else if (!empty_all(found)) {
    const os::Locked locked(lock_);
    free_.add(offset, offset + room, found);
    return errno = ENOMEM, nullptr;
  }
  put(offset, {bytes, room, kind});
  return views_->address() + offset;
}

void* Heap::allocate(size_t bytes, size_t alignment, bool is_zero, bool* is_available) {
  *is_available = start();
  if (!*is_available) return nullptr;
  if (bytes > kBytesMost || alignment > kBytesMost) return errno = ENOMEM, nullptr;
  std::vector<Range> to_zero;  // in memory of our own
  void* p = nullptr;
  {
    const Inside inside;
    std::vector<Range> stale;
    p = add(bytes, bytes, alignment, Kind::kAllocation, &stale);
    if (p != nullptr && is_zero) to_zero.swap(stale);
  }
  if (to_zero.empty()) return p;
  for (const Range& r : to_zero) std::memset(views_->address() + r.from, 0, r.to - r.from);
  const Inside inside;
  std::vector<Range>().swap(to_zero);
  return p;
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
    if (!keep_stale(range)) release(range, range);
  } catch (const std::bad_alloc&) {
  }
}

void* Heap::resize(void* p, size_t size) {
  if (is_child_) return errno = ENOMEM, nullptr;  // the store and the views are the parent's
  if (size > kBytesMost) return errno = ENOMEM, nullptr;
  const Inside inside;
  const uint64_t offset = offset_of(p);
  const Block block = block_of(p, "realloc");
  const uint64_t bytes = round_up(std::max<size_t>(size, 1), kSystemPage);
  if (bytes == block.bytes) return p;
  if (bytes > block.bytes) {
    if (grow(offset + block.bytes, offset + bytes, Kind::kAllocation)) return p;
    return errno = ENOMEM, nullptr;
  }
  const uint64_t from = round_up(offset + bytes, page_bytes());
  const uint64_t to = round_up(offset + block.bytes, page_bytes());
  if (empty(from, to) != 0) return p;  // the block stays as large as it is
  bool is_too_much = false;
  {
    const os::Locked locked(lock_);
    blocks_[offset].bytes = bytes;
    add_live(static_cast<int64_t>(bytes) - static_cast<int64_t>(block.bytes));
    is_too_much = has_too_much_space();
  }
  if (is_too_much && from < to) views_->store().withdraw(from, to - from);
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
    std::vector<Range> stale;
    to = add(size, uint64_t{2} * size, 1, Kind::kAllocation, &stale);
    if (to == nullptr) to = add(size, size, 1, Kind::kAllocation, &stale);
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
