#include "heaps/persistent/persistent_tiles.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/cancel_block.h"

namespace outcore::heap::persistent {

using base::RangeSet;

namespace {

constexpr uint64_t kGrowMin = 64, kGrowMax = 16384;   // 4 MiB, 1 GiB: the store gets no bytes yet
constexpr uint64_t kAheadMin = 16, kAheadMax = 1024;  // 1 MiB, 64 MiB: space promised in one call
constexpr uint64_t kTrimMin = 64;                     // 4 MiB

}  // namespace

Status Tiles::start(Mapping* mapping, std::shared_ptr<Store> store, uint64_t reserve_bytes,
                    uint64_t spare_bytes) {
  OC_CHECK(mapping->size_bytes() <= reserve_bytes && spare_bytes <= reserve_bytes);
  mapping_ = mapping;
  store_ = std::move(store);
  count_ = mapping->size_bytes() / kTileBytes;
  OC_CHECK(count_ != 0);
  if (Status s = owners_.allocate(reserve_bytes / kTileBytes); !s) return s;
  base_ = mapping->data();
  limit_ = capacity() - spare_bytes / kTileBytes;
  free_.add(1, count_ - 1);
  return {};
}

Result<uint64_t> Tiles::allocate(uint64_t count, bool is_metadata) {
  OC_CHECK(count != 0);
  const os::CancelBlock uncancelled;
  const std::lock_guard<std::mutex> guard(lock_);
  const uint64_t limit = is_metadata ? capacity() : limit_;
  try {
    std::optional<RangeSet::Range> found = free_.find(count);
    if (!found || found->first + count > limit) {
      if (Status s = grow(count, limit); !s) return s.error();
      found = free_.find(count);
      OC_CHECK(found && found->first + count <= limit);
    }
    if (Status s = reserve(found->first, count, found->first + found->count); !s) return s.error();
    backed_.remove(found->first, count);  // if the next one fails, they are only asked for again
    free_.remove(found->first, count);
    return found->first;
  } catch (const std::bad_alloc&) {
    return Error{ENOMEM, "allocate in " + mapping_->uri() + ": no memory for the heap's metadata"};
  }
}

// Makes the free run at the end at least `count` long.
Status Tiles::grow(uint64_t count, uint64_t limit) {
  const std::optional<RangeSet::Range> last = free_.last();
  const uint64_t at_end = last && last->first + last->count == count_ ? last->count : 0;
  const uint64_t needed = count - std::min(count, at_end), room = limit - std::min(limit, count_);
  if (needed > room || room == 0)
    return Error{ENOMEM, "allocate " + base::format_bytes(count * kTileBytes) + " in " +
                             mapping_->uri() + ": the heap may grow to " +
                             base::format_bytes(limit * kTileBytes) +
                             ": open it again with more reserve_bytes"};
  const uint64_t wanted =
      std::min(room, std::max(needed, std::clamp(count_ / 4, kGrowMin, kGrowMax)));
  Status s;
  for (const uint64_t more : {wanted, needed}) {
    s = mapping_->grow((count_ + more) * kTileBytes);
    if (!s) continue;
    const uint64_t first = count_;
    count_ += more;
    free_.add(first, more);
    return s;
  }
  return s;
}

// Reserves space. 0, or -errno, and then the range has no more space than before.
int Tiles::promise(uint64_t first, uint64_t count) {
  OC_ASSERT(count != 0 && first + count <= count_);
  const int error = store_->reserve(first * kTileBytes, count * kTileBytes);
  if (error == 0) return 0;
  if (error == -ENOTSUP) {
    can_promise_ = false;
    return 0;
  }
  // A part may have got space. If it keeps it, only space is lost.
  static_cast<void>(store_->discard(first * kTileBytes, count * kTileBytes));
  return error;
}

// Reserves space for the tiles, which are free, and for some that follow in the same run.
Status Tiles::reserve(uint64_t first, uint64_t count, uint64_t run_end) {
  if (!can_promise_) return {};
  const uint64_t end = first + count;
  for (uint64_t at = first; at < end;) {
    const std::optional<RangeSet::Range> backed = backed_.first_in(at, run_end - at);
    if (backed && backed->first == at) {
      at += backed->count;
      continue;
    }
    const uint64_t gap_end = backed ? backed->first : run_end;
    const uint64_t needed = std::min(gap_end, end) - at;
    const uint64_t used = count_ - free_.total();
    const uint64_t ahead =
        std::min(gap_end - at - needed, std::clamp(used / 16, kAheadMin, kAheadMax));
    uint64_t got = needed + ahead;
    int error = promise(at, got);
    if (error != 0 && ahead != 0) error = promise(at, got = needed);
    if (error != 0)
      return base::system_error(
          error, "allocate " + base::format_bytes(count * kTileBytes) + " in " + mapping_->uri(),
          error == -ENOSPC ? "free space there, or objects of the heap" : "");
    backed_.add(at, got);
    at += got;
  }
  return {};
}

void Tiles::prepare(uint64_t first, uint64_t count) noexcept {
  mapping_->prepare(first * kTileBytes, count * kTileBytes);
}

void Tiles::free(uint64_t first, uint64_t count) noexcept {
  const os::CancelBlock uncancelled;
  const std::lock_guard<std::mutex> guard(lock_);
  OC_CHECK(first != 0 && first + count <= count_);
  try {
    free_.add(first, count);
  } catch (const std::bad_alloc&) {
    lost_count_ += count;
    return;
  }
  try {
    backed_.add(first, count);
  } catch (const std::bad_alloc&) {  // its space is reserved once more when it is allocated
  }
  note_trim();
}

void Tiles::lose(uint64_t count) noexcept {
  const std::lock_guard<std::mutex> guard(lock_);
  lost_count_ += count;
}

void Tiles::set_owner(uint64_t first, uint64_t count, Owner owner) {
  OC_CHECK(first != 0 && count != 0 && first + count <= capacity());
  const uint64_t inner = owner.is_free() || owner.slab() != nullptr
                             ? owner.word()
                             : Owner(Owner::Kind::kInner, 0).word();
  owners_[first].store(owner.word(), std::memory_order_release);
  for (uint64_t tile = first + 1; tile < first + count; ++tile)
    owners_[tile].store(inner, std::memory_order_release);
}

void Tiles::note_trim() {
  const uint64_t used = count_ - free_.total();
  should_trim_.store(backed_.total() >= std::max(kTrimMin, used / 8), std::memory_order_relaxed);
}

Status Tiles::trim() {
  const os::CancelBlock uncancelled;
  const std::lock_guard<std::mutex> one_at_a_time(trim_lock_);
  Status first_error;
  uint64_t from = 0;
  while (true) {
    RangeSet::Range run;
    {
      const std::lock_guard<std::mutex> guard(lock_);
      const std::optional<RangeSet::Range> found = backed_.first_in(from, count_ - from);
      if (!found) break;
      run = *found;
      try {  // nobody gets these tiles meanwhile
        backed_.remove(run.first, run.count);
        free_.remove(run.first, run.count);
      } catch (const std::bad_alloc&) {
        return Error{ENOMEM, "trim " + mapping_->uri() + ": no memory for the heap's metadata"};
      }
      trimming_count_ += run.count;
    }
    const Status s = mapping_->discard(run.first * kTileBytes, run.count * kTileBytes);
    if (!s && first_error.ok()) first_error = s;
    from = run.first + run.count;
    const std::lock_guard<std::mutex> guard(lock_);
    OC_CHECK(trimming_count_ >= run.count);
    trimming_count_ -= run.count;
    try {
      free_.add(run.first, run.count);
      if (!s) backed_.add(run.first, run.count);
    } catch (const std::bad_alloc&) {
      if (!free_.first_in(run.first, run.count)) lost_count_ += run.count;
    }
  }
  should_trim_.store(false, std::memory_order_relaxed);
  return first_error;
}

uint64_t Tiles::tile_count() const {
  const std::lock_guard<std::mutex> guard(lock_);
  return count_;
}

uint64_t Tiles::end() const {
  const std::lock_guard<std::mutex> guard(lock_);
  const std::optional<RangeSet::Range> last = free_.last();
  return last && last->first + last->count == count_ ? last->first : count_;
}

bool Tiles::is_valid() const {
  const std::lock_guard<std::mutex> guard(lock_);
  if (!free_.is_valid() || !backed_.is_valid()) return false;
  if (free_.total() + trimming_count_ + lost_count_ > count_) return false;
  for (const auto& [first, count] : free_.all())
    for (uint64_t tile = first; tile < first + count; ++tile)
      if (!owner(tile).is_free()) return false;
  for (const auto& [first, count] : backed_.all()) {
    const std::optional<RangeSet::Range> found = free_.first_in(first, count);
    if (!found || found->first != first || found->count != count) return false;
  }
  return true;
}

}  // namespace outcore::heap::persistent
