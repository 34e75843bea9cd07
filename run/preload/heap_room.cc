// Room for blocks: where it comes from, and where it goes when they are freed. See heap.h.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/address_space.h"
#include "core/os/wait.h"
#include "core/os/wait_limit.h"
#include "run/preload/heap.h"
#include "run/preload/own_memory.h"

namespace outcore::preload {

using base::round_up;

namespace {

constexpr uint64_t kKeptBytesMax = uint64_t{256} << 20;  // of space that no block needs
constexpr uint64_t kTrimNsMost = 5'000'000'000;          // that an allocation waits for others'

// This thread trims until the end of the scope, however it ends.
class TrimNote {
 public:
  TrimNote(std::atomic<uint32_t>& trimming, std::atomic<uint32_t>& ended)
      : trimming_(trimming), ended_(ended) {
    trimming_.fetch_add(1);
  }
  ~TrimNote() {
    ended_.fetch_add(1);
    trimming_.fetch_sub(1);
    os::wake_all(&ended_);
  }
  TrimNote(const TrimNote&) = delete;
  TrimNote& operator=(const TrimNote&) = delete;

 private:
  std::atomic<uint32_t>&trimming_, &ended_;
};

}  // namespace

// REQUIRES, here and below: the caller has an Inside.
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
  std::vector<Range> stale, empty;
  const TrimNote note(trimming_, trims_);
  {
    const os::Locked locked(lock_);
    stale = free_.take_stale();
  }
  for (const Range& r : stale) release(r, r);
  {
    const os::Locked locked(lock_);
    empty = free_.take_empty();  // so nobody allocates them meanwhile
  }
  for (const Range& r : empty) views_->store().withdraw(r.from, r.to - r.from);
  const os::Locked locked(lock_);
  for (const Range& r : empty) free_.add(r.from, r.to);
}

int Heap::take(uint64_t bytes, uint64_t room, uint64_t alignment, uint64_t* offset,
               bool may_be_stale, std::vector<Range>* stale) {
  release_excess();
  alignment = std::max(alignment, page_bytes());
  const auto find = [&] {
    const os::Locked locked(lock_);
    const auto found = free_.take(room, alignment, may_be_stale, stale);
    *offset = found.value_or(0);
    return found.has_value();
  };
  // Who trims has taken free addresses away, and gives them back before this is noted.
  os::WaitLimit limit(kTrimNsMost);
  for (uint32_t ended = trims_.load(); !find(); ended = trims_.load()) {
    if (limit.is_over() || (trimming_.load() == 0 && trims_.load() == ended)) return ENOMEM;
    os::wait(&trims_, ended, 10'000'000);
  }
  const int error = back(*offset, bytes);
  if (error != 0) {
    const os::Locked locked(lock_);
    free_.add(*offset, *offset + room, *stale);
  }
  return error;
}

// REQUIRES: the lock.
bool Heap::has_too_much_space() const {
  return views_->store().reserved_bytes() > live_bytes_ + kKeptBytesMax;
}

// Discards whole pages of ours, and undoes the program's mlock on them. 0 or an errno.
int Heap::empty(uint64_t from, uint64_t to) {
  if (from >= to) return 0;
  static_cast<void>(pin(from, to, false));
  return views_->discard(from, to);
}

bool Heap::empty_all(const std::vector<Range>& ranges) {
  return std::all_of(ranges.begin(), ranges.end(),
                     [this](const Range& r) { return empty(r.from, r.to) == 0; });
}

// What is stale is a burden where memory is short: it is written before it leaves.
uint64_t Heap::stale_bytes_most() const {
  constexpr uint64_t kFewMost = 16 << 20;
  const uint64_t budget = views_->engine().budget_bytes(), used = views_->engine().used_bytes();
  const bool is_short = used > budget - budget / 8;
  return is_short ? std::min(budget / 16, kFewMost) : budget / 4;
}

// Memory has become short since it was freed.
void Heap::release_excess() {
  std::vector<Range> oldest;
  {
    const os::Locked locked(lock_);
    if (free_.stale_bytes() != 0) oldest = free_.take_excess(stale_bytes_most());
  }
  for (const Range& r : oldest) release(r, r);
}

// Frees a block whose bytes may stay in memory for now. False: release() it.
bool Heap::keep_stale(const Range& range) {
  constexpr uint64_t kLargest = 64 << 20;  // the C library keeps none of more than 32 MiB
  const uint64_t most = stale_bytes_most();
  if (range.to - range.from > std::min(most / 2, kLargest) || is_pinned(range)) return false;
  const auto ours = [](region::View&, uint64_t, uint64_t) { return 0; };
  const auto kernels = [](uint64_t, uint64_t) { return EBUSY; };
  if (views_->for_each(range.from, range.to, ours, kernels) != 0 ||
      views_->protect(range.from, range.to, PROT_READ | PROT_WRITE) != 0)
    return false;
  std::vector<Range> oldest;
  {
    const os::Locked locked(lock_);
    if (has_too_much_space()) return false;
    free_.add(range.from, range.to, {range});
    oldest = free_.take_excess(most);
  }
  for (const Range& r : oldest) release(r, r);
  return true;
}

// What of `own` is the kernel's by now becomes inaccessible, and is never used again, nor are pages
// that cannot be made writable and empty. Outside of `pages` other threads may have blocks by now.
void Heap::release(const Range& pages, const Range& own) {
  if (own.from >= own.to) return;
  std::vector<Range> ours;
  static_cast<void>(views_->for_each(
      std::min(pages.from, own.from), std::max(pages.to, own.to),
      [&](region::View&, uint64_t from, uint64_t to) {
        from = std::max(from, pages.from);
        to = std::min(to, pages.to);
        if (from < to) ours.push_back({from, to});
        return 0;
      },
      [&](uint64_t from, uint64_t to) {
        from = std::max({from, own.from, pages.from});
        to = std::min({to, own.to, pages.to});
        if (from < to)
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
      is_too_much = has_too_much_space();
    }
    if (is_too_much) views_->store().withdraw(r.from, r.to - r.from);
    const os::Locked locked(lock_);
    free_.add(r.from, r.to);
  }
}

// The block of this kind that ends there. REQUIRES: the lock.
Heap::Blocks::iterator Heap::block_that_ends(uint64_t to, Kind kind) {
  auto at = blocks_.lower_bound(to);
  if (at == blocks_.begin()) return blocks_.end();
  --at;
  const bool is_it = at->second.kind == kind && at->first + at->second.bytes == to;
  return is_it ? at : blocks_.end();
}

// Other threads may have cut the block meanwhile, or made it end elsewhere: then nothing changes.
bool Heap::grow(uint64_t to, uint64_t new_end, Kind kind) {
  OC_CHECK(to < new_end);
  if (!OwnMemory::has_room(OwnMemory::kCallBytes)) return false;
  const uint64_t room_wanted = round_up(new_end, page_bytes());
  uint64_t room_end = 0;  // of now
  std::vector<Range> stale;
  {
    const os::Locked locked(lock_);
    const auto at = block_that_ends(to, kind);
    if (at == blocks_.end()) return false;
    room_end = at->first + at->second.room;
    if (new_end > room_end &&
        (room_wanted > views_->size_bytes() || !free_.take_at(room_end, room_wanted, &stale)))
      return false;
  }
  bool is_there = true;
  if (kind == Kind::kMapping)  // which reads zero
    is_there = empty_all(stale);
  else
    for (const Range& r : stale) views_->forget_absent(r.from, r.to);
  is_there = is_there && back(to, new_end - to) == 0;
  const os::Locked locked(lock_);
  const auto at = is_there ? block_that_ends(to, kind) : blocks_.end();
  if (at == blocks_.end() || at->first + at->second.room != room_end) {
    if (new_end > room_end) free_.add(room_end, room_wanted, stale);
    return false;
  }
  if (new_end > room_end) at->second.room = room_wanted - at->first;
  at->second.bytes = new_end - at->first;
  add_live(static_cast<int64_t>(new_end - to));
  return true;
}

}  // namespace outcore::preload
