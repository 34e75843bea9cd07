#include "heaps/volatile/extents.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/cancel_block.h"

namespace outcore::heap {
namespace {

constexpr uint64_t kGrowUnitsMin = (uint64_t{1} << 20) / kUnitBytes;
constexpr uint64_t kGrowUnitsMax = (uint64_t{64} << 20) / kUnitBytes;
constexpr int kReturnsMax = 1000;  // fresh spans at a time: others may make more meanwhile
constexpr int kLooksMax = 16;      // how many spans of a bin are examined that may be too small

}  // namespace

Extents::Extents(HeapMemory& heap_memory, Metadata& metadata, uint64_t kept_bytes_max)
    : memory_(heap_memory), metadata_(metadata), kept_max_(kept_bytes_max / kUnitBytes) {}

Extents::~Extents() { Metadata::unmap(map_, unit_count_ * sizeof *map_); }

int Extents::prepare() {
  unit_count_ = memory_.capacity_bytes() / kUnitBytes;
  void* const memory = Metadata::map(unit_count_ * sizeof *map_);
  if (memory == nullptr) return -ENOMEM;
  map_ = static_cast<std::atomic<uint64_t>*>(memory);
  return 0;
}

// The first unit at or after this one whose address is a multiple of `alignment` units.
uint64_t Extents::aligned(uint64_t unit, uint64_t alignment) const {
  const uint64_t start = reinterpret_cast<uint64_t>(memory_.base()) / kUnitBytes;
  return base::round_up(start + unit, alignment) - start;
}

// -- Lists, under the lock --

// Bin i holds counts of [4 + i % 4] * 2^(i / 4) / 4 and more, below those of bin i + 1.
size_t Extents::bin_of(uint64_t count) {
  if (count < 4) return static_cast<size_t>(count);
  const auto doubling = static_cast<unsigned>(std::bit_width(count) - 1);
  return (doubling - 1) * 4 + (count >> (doubling - 2) & 3);
}

void Extents::list(Span* span) {
  Bins& in = bins(span->kind);
  const size_t bin = bin_of(span->count);
  OC_CHECK(is_free(span->kind) && !span->is_aged && bin < kBins);
  span->prev = nullptr;
  span->next = in.first[bin];
  if (span->next != nullptr) span->next->prev = span;
  in.first[bin] = span;
  in.used[bin / 64] |= uint64_t{1} << bin % 64;
  if (span->kind != SpanKind::kKept) return;
  kept_ += span->count;
  span->is_aged = true;
  aged_ += span->count;
  span->newer = nullptr;
  span->older = newest_;
  (newest_ != nullptr ? newest_->newer : oldest_) = span;
  newest_ = span;
}

void Extents::unlist(Span* span) {
  Bins& in = bins(span->kind);
  const size_t bin = bin_of(span->count);
  OC_CHECK(is_free(span->kind) && bin < kBins);
  if (span->next != nullptr) span->next->prev = span->prev;
  (span->prev != nullptr ? span->prev->next : in.first[bin]) = span->next;
  if (in.first[bin] == nullptr) in.used[bin / 64] &= ~(uint64_t{1} << bin % 64);
  if (span->kind == SpanKind::kKept) kept_ -= span->count;
  if (span->is_aged) {
    aged_ -= span->count;
    (span->newer != nullptr ? span->newer->older : newest_) = span->older;
    (span->older != nullptr ? span->older->newer : oldest_) = span->newer;
    span->is_aged = false;
  }
  span->kind = SpanKind::kBusy;
}

void Extents::set_edges(Span* span) {
  OC_CHECK(span->count != 0 && span->end() <= unit_count_);
  const auto value = reinterpret_cast<uint64_t>(span);
  map_[span->first].store(value, std::memory_order_release);
  map_[span->end() - 1].store(value, std::memory_order_release);
}

void Extents::mark_all(Span* span, uint8_t mark) {
  const uint64_t value = reinterpret_cast<uint64_t>(span) | uint64_t{mark} << kMarkShift;
  for (uint64_t unit = span->first; unit < span->end(); ++unit)
    map_[unit].store(value, std::memory_order_release);
}

// The span whose first or last unit this is. nullptr: there has never been one.
Span* Extents::neighbour(uint64_t unit) {
  return unit >= end_ ? nullptr : span_of(map_[unit].load(std::memory_order_relaxed));
}

void Extents::drop(Span* span) { metadata_.free(span, sizeof *span); }

void Extents::put_free(Span* span, SpanKind kind) {
  OC_CHECK(is_free(kind) && !is_free(span->kind) && !span->is_aged);
  span->kind = kind;
  const auto take_in = [&](Span* other) {
    unlist(other);
    span->first = std::min(span->first, other->first);
    span->count += other->count;
    drop(other);
  };
  if (span->first > 0)
    if (Span* before = neighbour(span->first - 1); before != nullptr && before->kind == kind)
      take_in(before);
  if (Span* after = neighbour(span->end()); after != nullptr && after->kind == kind) take_in(after);
  set_edges(span);
  list(span);
}

// From the smallest bin in which all are large enough; or one of the bin before it that is.
Span* Extents::find_free(SpanKind kind, uint64_t count, uint64_t alignment) {
  const auto fits = [&](const Span& span) {
    const uint64_t start = aligned(span.first, alignment);
    return start < span.end() && span.end() - start >= count;
  };
  const Bins& in = bins(kind);
  int looks = 0;
  for (size_t bin = bin_of(count); bin < kBins; ++bin) {
    const uint64_t rest = in.used[bin / 64] >> bin % 64;
    if (rest == 0) {
      bin |= 63;
      continue;
    }
    bin += static_cast<size_t>(std::countr_zero(rest));
    for (Span* span = in.first[bin]; span != nullptr; span = span->next) {
      if (fits(*span)) return span;
      // Beyond this only spans count that are large enough wherever they begin.
      if (++looks >= kLooksMax && bin < bin_of(count + alignment - 1) + 1) {
        bin = bin_of(count + alignment - 1);
        break;
      }
    }
  }
  return nullptr;
}

// Takes the span out of its list, and splits off what is more than was asked for. nullptr: there is
// no memory for metadata, and nothing has changed.
Span* Extents::cut(Span* span, uint64_t count, uint64_t alignment) {
  const SpanKind kind = span->kind;
  const uint64_t start = aligned(span->first, alignment), end = span->end();
  OC_CHECK(start >= span->first && start + count <= end);
  Span *head = nullptr, *tail = nullptr;
  const auto make = [&](uint64_t from, uint64_t to) -> Span* {
    void* const memory = metadata_.allocate(sizeof(Span));
    if (memory == nullptr) return nullptr;
    Span* const made = new (memory) Span;
    made->first = from;
    made->count = to - from;
    return made;
  };
  if (start > span->first && (head = make(span->first, start)) == nullptr) return nullptr;
  if (start + count < end && (tail = make(start + count, end)) == nullptr) {
    if (head != nullptr) drop(head);
    return nullptr;
  }
  unlist(span);
  span->first = start;
  span->count = count;
  set_edges(span);
  for (Span* rest : {head, tail}) {
    if (rest == nullptr) continue;
    rest->kind = kind;
    set_edges(rest);
    list(rest);
  }
  return span;
}

// -- Allocating and freeing --

int Extents::allocate(const Wish& wish, Span** span, bool* is_zero) {
  const os::CancelBlock uncancelled;
  if (wish.count > unit_count_ || wish.alignment > unit_count_) return -ENOMEM;
  int result = allocate_once(wish, span, is_zero);
  if (result != -ENOSPC && result != -EDQUOT && result != -ENOMEM) return result;
  // Free spans have space that could serve this request, but lie in pieces of several kinds.
  Lock lock(mutex_);
  static_cast<void>(purge(lock, 0));
  return_fresh(lock);
  lock.unlock();
  return allocate_once(wish, span, is_zero);
}

int Extents::allocate_once(const Wish& wish, Span** span, bool* is_zero) {
  static constexpr SpanKind kOrder[] = {SpanKind::kKept, SpanKind::kFresh, SpanKind::kReturned};
  static constexpr SpanKind kZeroFirst[] = {SpanKind::kFresh, SpanKind::kReturned, SpanKind::kKept};
  const uint64_t page = memory_.page_bytes() / kUnitBytes;
  Lock lock(mutex_);
  for (;;) {
    bool is_promised = false;
    for (const SpanKind kind : wish.wants_zero ? kZeroFirst : kOrder) {
      // Space is reserved in whole pages of the heap's memory, because whole pages are written.
      const bool is_whole = kind == SpanKind::kReturned;
      const uint64_t count = is_whole ? base::round_up(wish.count, page) : wish.count;
      const uint64_t alignment = is_whole ? std::max(wish.alignment, page) : wish.alignment;
      Span* const found = find_free(kind, count, alignment);
      if (found == nullptr) continue;
      if (!is_whole) return allocate_found(wish, found, span, is_zero);
      if (const int error = promise(lock, found, count, alignment); error != 0) return error;
      is_promised = true;  // it is fresh now, unless other threads were faster
      break;
    }
    if (is_promised) continue;
    if (const int error = grow_memory(lock, wish.count + wish.alignment - 1); error != 0)
      return error;
  }
}

// A part of a returned span gets space, and becomes fresh.
int Extents::promise(Lock& lock, Span* found, uint64_t count, uint64_t alignment) {
  Span* const part = cut(found, count, alignment);
  if (part == nullptr) return -ENOMEM;
  lock.unlock();
  const int error = memory_.reserve(part->first * kUnitBytes, part->size_bytes());
  lock.lock();
  if (error == 0) reserved_ += part->count;
  put_free(part, error == 0 ? SpanKind::kFresh : SpanKind::kReturned);
  return error;
}

int Extents::allocate_found(const Wish& wish, Span* found, Span** span, bool* is_zero) {
  const SpanKind was = found->kind;
  Span* const taken = cut(found, wish.count, wish.alignment);
  if (taken == nullptr) return -ENOMEM;
  taken->kind = wish.kind;
  *is_zero = was != SpanKind::kKept;
  *span = taken;
  return 0;
}

// Other threads may allocate the new memory before the caller does: then it tries again.
int Extents::grow_memory(Lock& lock, uint64_t count) {
  const uint64_t seen_end = end_;
  lock.unlock();
  const std::lock_guard<std::mutex> growing(growing_);
  lock.lock();
  if (end_ != seen_end) return 0;
  const uint64_t room = unit_count_ - end_;
  // If there is free space at the end, only the missing part is added.
  Span* const last = end_ == 0 ? nullptr : neighbour(end_ - 1);
  if (last != nullptr && last->kind == SpanKind::kFresh && last->count < count) {
    count -= last->count;
  } else if (last != nullptr && last->kind == SpanKind::kReturned && last->count < count &&
             count > room && count - last->count <= room) {
    return promise(lock, last, last->count, 1);  // which makes it fresh: the caller tries again
  }
  if (count > room) return -ENOMEM;
  const uint64_t step =
      std::min(room, std::max(count, std::clamp(end_ / 8, kGrowUnitsMin, kGrowUnitsMax)));
  void* const memory = metadata_.allocate(sizeof(Span));
  if (memory == nullptr) return -ENOMEM;
  Span* const span = new (memory) Span;
  lock.unlock();
  uint64_t granted = step;
  int error = memory_.grow((seen_end + granted) * kUnitBytes);
  if (error != 0 && granted > count) {
    granted = count;
    error = memory_.grow((seen_end + granted) * kUnitBytes);
  }
  lock.lock();
  if (error != 0) {
    drop(span);
    return error;
  }
  span->first = seen_end;
  span->count = granted;
  end_ = seen_end + granted;
  reserved_ += granted;
  put_free(span, SpanKind::kFresh);
  return 0;
}

void Extents::free(Span* span) {
  const os::CancelBlock uncancelled;
  Lock lock(mutex_);
  put_free(span, SpanKind::kKept);
  if (aged_ > kept_max_ && !is_purging_) static_cast<void>(purge(lock, kept_max_ / 4 * 3));
}

bool Extents::grow(Span* span, uint64_t count) {
  const os::CancelBlock uncancelled;
  Lock lock(mutex_);
  const uint64_t more = count - span->count;
  if (more > unit_count_ - span->end()) return false;
  Span* const after = neighbour(span->end());
  if (after == nullptr || after->count < more ||
      (after->kind != SpanKind::kKept && after->kind != SpanKind::kFresh))
    return false;
  Span* const taken = cut(after, more, 1);
  if (taken == nullptr) return false;
  span->count = count;
  set_edges(span);
  drop(taken);
  return true;
}

void Extents::shrink(Span* span, uint64_t count) {
  OC_CHECK(count != 0 && count < span->count && !is_free(span->kind));
  const os::CancelBlock uncancelled;
  void* const memory = metadata_.allocate(sizeof(Span));
  if (memory == nullptr) return;
  Span* const rest = new (memory) Span;
  {
    const Lock lock(mutex_);
    rest->first = span->first + count;
    rest->count = span->count - count;
    span->count = count;
    set_edges(span);
    set_edges(rest);
  }
  free(rest);
}

// -- Giving back --

int Extents::trim() {
  const os::CancelBlock uncancelled;
  Lock lock(mutex_);
  const int error = purge(lock, 0);
  return_fresh(lock);
  return error;
}

// What other threads free meanwhile they give back themselves.
int Extents::purge(Lock& lock, uint64_t kept_max) {
  int error = 0;
  is_purging_ = true;
  uint64_t quota = aged_ - std::min(aged_, kept_max);
  // A span that cannot be given back (because its pages are pinned, say) does not stop others.
  while (quota > 0 && aged_ > kept_max) {
    const uint64_t count = oldest_->count;
    int one = 0;
    static_cast<void>(return_one(lock, oldest_, &one));
    if (error == 0) error = one;
    quota -= std::min(quota, count);
  }
  is_purging_ = false;
  return error;
}

// Gives back the whole pages of a free span; the rest stays. False: it contains no whole page, so
// it leaves the list by age until it is joined with a neighbour.
bool Extents::return_one(Lock& lock, Span* span, int* error) {
  const uint64_t page = memory_.page_bytes() / kUnitBytes;
  const uint64_t from = aligned(span->first, page), to = aligned(span->end() + 1, page) - page;
  Span* const whole = from < to ? cut(span, to - from, page) : nullptr;
  if (whole == nullptr) {
    aged_ -= span->count;
    (span->newer != nullptr ? span->newer->older : newest_) = span->older;
    (span->older != nullptr ? span->older->newer : oldest_) = span->newer;
    span->is_aged = false;
    return false;
  }
  lock.unlock();
  const int result = memory_.give_back(whole->first * kUnitBytes, whole->size_bytes());
  lock.lock();
  if (result == 0) reserved_ -= whole->count;
  put_free(whole, result == 0 ? SpanKind::kReturned : SpanKind::kKept);
  if (result != 0) *error = result;
  return result == 0;
}

// Gives back fresh space, too, where it fills whole pages of the heap's memory.
void Extents::return_fresh(Lock& lock) {
  const uint64_t page = memory_.page_bytes() / kUnitBytes;
  for (int i = 0; i < kReturnsMax; ++i) {
    Span* const found = find_free(SpanKind::kFresh, page, page);
    if (found == nullptr) return;
    const uint64_t from = aligned(found->first, page), to = aligned(found->end() + 1, page) - page;
    Span* const whole = cut(found, to - from, page);
    if (whole == nullptr) return;
    lock.unlock();
    const int error = memory_.give_back(whole->first * kUnitBytes, whole->size_bytes());
    lock.lock();
    if (error == 0) reserved_ -= whole->count;
    put_free(whole, error == 0 ? SpanKind::kReturned : SpanKind::kFresh);
    if (error != 0) return;
  }
}

Extents::Sizes Extents::sizes() const {
  const Lock lock(mutex_);
  return {reserved_ * kUnitBytes, kept_ * kUnitBytes, end_ * kUnitBytes};
}

}  // namespace outcore::heap
