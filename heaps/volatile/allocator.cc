#include "heaps/volatile/allocator.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::heap {
namespace {

// All pages of a fresh block that is so small will usually be written.
constexpr uint64_t kExpectedBytesMax = 256 << 10;
// In a kept block up to this size zeros are written. Pages of a larger one are given back, because
// they may be only in the store, and would be read just to be overwritten.
constexpr uint64_t kZeroedBytesMax = 128 << 10;

[[noreturn]] void refuse_pointer(const void* block) {
  std::fprintf(stderr, "outcore: heap: %p is not a block of this heap, or was freed already\n",
               block);
  std::abort();
}

}  // namespace

Allocator::Allocator(std::unique_ptr<HeapMemory> heap_memory, uint64_t kept_bytes_max)
    : memory_(std::move(heap_memory)),
      extents_(*memory_, metadata_, kept_bytes_max),
      slabs_(*memory_, extents_, metadata_),
      capacity_bytes_(memory_->capacity_bytes()) {}

std::unique_ptr<Allocator> Allocator::make(std::unique_ptr<HeapMemory> heap_memory,
                                           uint64_t kept_bytes_max) {
  std::unique_ptr<Allocator> allocator(new Allocator(std::move(heap_memory), kept_bytes_max));
  if (allocator->extents_.prepare() != 0) return nullptr;
  allocator->number_ = thread_caches::enter(*allocator);
  return allocator;
}

Allocator::~Allocator() {
  if (number_ != 0) thread_caches::leave(*this, number_);
  for (ThreadCache* cache = caches_; cache != nullptr;) {
    ThreadCache* const next = cache->next;
    Metadata::unmap(cache, sizeof *cache);
    cache = next;
  }
}

// -- Allocating --

int Allocator::allocate_slowly(size_t bytes, size_t alignment, bool is_zeroed, void** block) {
  const uint8_t c = class_of(bytes, std::max<size_t>(alignment, 1));
  if (c == 0) return allocate_large(bytes, alignment, is_zeroed, block);
  const int error = allocate_small(c, block);
  if (error == 0 && is_zeroed) std::memset(*block, 0, bytes);
  return error;
}

int Allocator::allocate_small(uint8_t c, void** block) {
  OC_CHECK(c != 0 && c < kSizeClasses);
  ThreadCache* cache = thread_caches::find(number_);
  if (cache == nullptr) cache = thread_caches::far(*this, number_);
  const SizeClass& size = kSizes[c];
  int error = 0;
  if (cache == nullptr) {
    if (thread_caches::is_parents(number_)) return -EPERM;
    std::byte* one = nullptr;
    if (slabs_.allocate(c, {&one, 1}, &error) == 0) return error;
    *block = one;
    count(size.block_bytes, 1);
    return 0;
  }
  ThreadCache::Stack& stack = cache->stacks[c];
  if (stack.blocks == nullptr) {
    stack.blocks =
        static_cast<std::byte**>(metadata_.allocate(size.cached_max * sizeof(std::byte*)));
    if (stack.blocks == nullptr) return -ENOMEM;
  }
  if (stack.count == 0) {
    std::byte** const blocks = stack.blocks;
    const size_t taken = slabs_.allocate(c, {blocks, size.cached_max / 2}, &error);
    if (taken == 0) return error;
    // They came in ascending order, and are handed out from the end.
    std::reverse(blocks, blocks + taken);
    stack.count = static_cast<uint32_t>(taken);
  }
  OC_CHECK(stack.count != 0 && stack.count <= size.cached_max);
  *block = stack.blocks[--stack.count];
  cache->count_one(size.block_bytes, 1);
  return 0;
}

int Allocator::allocate_large(size_t bytes, size_t alignment, bool is_zeroed, void** block) {
  if (thread_caches::is_parents(number_)) return -EPERM;
  if (bytes > capacity_bytes_ || alignment > capacity_bytes_) return -ENOMEM;
  const uint64_t units = base::round_up(bytes, kUnitBytes) / kUnitBytes;
  Span* span = nullptr;
  bool is_zero = false;
  // A small block is zeroed faster than zeroed memory is found.
  const bool wants_zero = is_zeroed && bytes > kZeroedBytesMax;
  const uint64_t aligned_units = std::max<uint64_t>(alignment / kUnitBytes, 1);
  if (const int error =
          extents_.allocate({units, aligned_units, wants_zero, SpanKind::kLarge}, &span, &is_zero);
      error != 0)
    return error;
  if (is_zero && span->size_bytes() <= kExpectedBytesMax)
    memory_->expect(span->first * kUnitBytes, span->size_bytes());
  if (is_zeroed && !is_zero) zero(*span);
  *block = extents_.address_of(*span);
  OC_ASSERT(reinterpret_cast<uintptr_t>(*block) % std::max<size_t>(alignment, 1) == 0);
  count(static_cast<int64_t>(span->size_bytes()), 1);
  return 0;
}

void Allocator::zero(const Span& span) {
  const uint64_t page = memory_->page_bytes(), start = span.first * kUnitBytes;
  const uint64_t from = base::round_up(start, page),
                 to = base::round_down(start + span.size_bytes(), page);
  std::byte* const first = extents_.address_of(span);
  if (span.size_bytes() <= kZeroedBytesMax || from >= to) {
    std::memset(first, 0, span.size_bytes());
    return;
  }
  std::memset(first, 0, from - start);
  std::memset(first + (to - start), 0, start + span.size_bytes() - to);
  memory_->zero(from, to - from);
}

// -- Freeing --

void Allocator::free_slowly(void* block) {
  if (thread_caches::is_parents(number_)) return;
  if (!owns(block)) refuse_pointer(block);
  const auto at = static_cast<uint64_t>(static_cast<std::byte*>(block) - memory_->base());
  const uint8_t c = Extents::mark_of(extents_.find(at / kUnitBytes));
  if (c == 0) return free_large(large_at(block));
  ThreadCache* cache = thread_caches::find(number_);
  if (cache == nullptr) cache = thread_caches::far(*this, number_);
  auto* const one = static_cast<std::byte*>(block);
  if (cache != nullptr && cache->stacks[c].blocks == nullptr)
    cache->stacks[c].blocks =
        static_cast<std::byte**>(metadata_.allocate(kSizes[c].cached_max * sizeof(std::byte*)));
  if (cache == nullptr || cache->stacks[c].blocks == nullptr) {
    slabs_.free(c, {&one, 1});
    count(-int64_t{kSizes[c].block_bytes}, -1);
    return;
  }
  if (cache->stacks[c].count == kSizes[c].cached_max) flush(*cache, c, kSizes[c].cached_max / 2);
  cache->stacks[c].blocks[cache->stacks[c].count++] = one;
  cache->count_one(-int64_t{kSizes[c].block_bytes}, -1);
}

void Allocator::free_large(Span* span) {
  OC_ASSERT(span->kind == SpanKind::kLarge);
  count(-static_cast<int64_t>(span->size_bytes()), -1);
  extents_.free(span);
}

// The newest blocks stay, because they are in the processor's cache.
void Allocator::flush(ThreadCache& cache, uint8_t c, uint32_t keep) {
  ThreadCache::Stack& stack = cache.stacks[c];
  OC_CHECK(keep <= stack.count && stack.count <= kSizes[c].cached_max);
  const uint32_t gone = stack.count - keep;
  slabs_.free(c, {stack.blocks, gone});
  std::memmove(stack.blocks, stack.blocks + gone, keep * sizeof *stack.blocks);
  stack.count = keep;
}

void Allocator::flush_all(ThreadCache& cache) {
  for (size_t c = 1; c < kSizeClasses; ++c)
    if (cache.stacks[c].count > 0) flush(cache, static_cast<uint8_t>(c), 0);
}

// -- Resizing --

// Stops the program if there is no large block at this address.
Span* Allocator::large_at(const void* block) const {
  const auto at = static_cast<uint64_t>(static_cast<const std::byte*>(block) - memory_->base());
  Span* const span = Extents::span_of(extents_.find(at / kUnitBytes));
  if (span == nullptr || span->kind != SpanKind::kLarge || span->first * kUnitBytes != at)
    refuse_pointer(block);
  return span;
}

size_t Allocator::usable_bytes(const void* block) const {
  if (!owns(block)) refuse_pointer(block);
  const auto at = static_cast<uint64_t>(static_cast<const std::byte*>(block) - memory_->base());
  const uint8_t c = Extents::mark_of(extents_.find(at / kUnitBytes));
  return c != 0 ? kSizes[c].block_bytes : large_at(block)->size_bytes();
}

bool Allocator::resize_in_place(Span* span, size_t bytes) {
  OC_ASSERT(bytes > 0 && span->kind == SpanKind::kLarge);
  const uint64_t units = base::round_up(bytes, kUnitBytes) / kUnitBytes, before = span->count;
  if (units > before && !extents_.grow(span, units)) return false;
  if (units < before) extents_.shrink(span, units);
  count((static_cast<int64_t>(span->count) - static_cast<int64_t>(before)) *
            static_cast<int64_t>(kUnitBytes),
        0);
  return true;
}

int Allocator::resize(void* block, size_t bytes, size_t alignment, void** now) {
  OC_CHECK(bytes > 0 && alignment != 0);
  if (thread_caches::is_parents(number_)) return -EPERM;
  if (bytes > capacity_bytes_) return -ENOMEM;
  const size_t usable = usable_bytes(block);
  const bool is_aligned = reinterpret_cast<uint64_t>(block) % alignment == 0;
  *now = block;
  if (is_aligned && usable > kSmallBytesMax && bytes > kSmallBytesMax) {
    if (resize_in_place(large_at(block), bytes)) return 0;
  } else if (is_aligned && bytes <= usable && bytes > usable / 2) {
    return 0;
  }
  void* fresh = nullptr;
  // A block that grows bit by bit should not be copied each time.
  int error = -ENOMEM;
  if (bytes > usable && bytes > kSmallBytesMax && bytes < usable + usable / 8)
    error = allocate(usable + usable / 8, alignment, false, &fresh);
  if (error != 0) error = allocate(bytes, alignment, false, &fresh);
  if (error != 0) return is_aligned && bytes <= usable ? 0 : error;
  std::memcpy(fresh, block, std::min(usable, bytes));
  free(block);
  *now = fresh;
  return 0;
}

// -- The whole heap --

int Allocator::trim() {
  if (thread_caches::is_parents(number_)) return -EPERM;
  if (ThreadCache* cache = thread_caches::find(number_); cache != nullptr) flush_all(*cache);
  slabs_.release_empty();
  return extents_.trim();
}

ThreadCache* Allocator::attach_cache() {
  const std::lock_guard<std::mutex> guard(caches_mutex_);
  if (idle_ != nullptr) {
    ThreadCache* const cache = idle_;
    OC_CHECK(cache->owner == this);
    idle_ = cache->next_idle;
    return cache;
  }
  void* const memory = Metadata::map(sizeof(ThreadCache));
  if (memory == nullptr) return nullptr;
  auto* const cache = new (memory) ThreadCache;
  cache->owner = this;
  cache->next = caches_;
  caches_ = cache;
  return cache;
}

void Allocator::detach_cache(ThreadCache* cache) {
  OC_CHECK(cache->owner == this);
  flush_all(*cache);
  const std::lock_guard<std::mutex> guard(caches_mutex_);
  cache->next_idle = idle_;
  idle_ = cache;
}

void Allocator::count(int64_t bytes, int64_t blocks) {
  live_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  live_blocks_.fetch_add(blocks, std::memory_order_relaxed);
}

Allocator::Sizes Allocator::sizes() const {
  if (thread_caches::is_parents(number_)) return {};
  int64_t bytes = live_bytes_.load(std::memory_order_relaxed);
  int64_t blocks = live_blocks_.load(std::memory_order_relaxed);
  {
    const std::lock_guard<std::mutex> guard(caches_mutex_);
    for (const ThreadCache* cache = caches_; cache != nullptr; cache = cache->next) {
      bytes += cache->live_bytes.load(std::memory_order_relaxed);
      blocks += cache->live_blocks.load(std::memory_order_relaxed);
    }
  }
  const Extents::Sizes extents = extents_.sizes();
  const auto at_least_0 = [](int64_t n) { return static_cast<uint64_t>(std::max<int64_t>(n, 0)); };
  return {at_least_0(bytes),  at_least_0(blocks), extents.reserved_bytes,
          extents.kept_bytes, extents.end_bytes,  metadata_.bytes()};
}

}  // namespace outcore::heap
