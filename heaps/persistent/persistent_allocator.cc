#include "heaps/persistent/persistent_allocator.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <new>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/process_lock.h"

namespace outcore::heap::persistent {
namespace {

constexpr auto kCachedMax = [] {
  std::array<uint32_t, kCellSizes> all{};
  for (unsigned i = 0; i < kCellSizes; ++i)
    all[i] = static_cast<uint32_t>(
        std::clamp<uint64_t>((32 << 10) / cell_bytes(i), 4, Cache::kCellsMax));
  return all;
}();

// The heaps that are open in this process. Never destroyed, because threads may end after main().
struct Open {
  os::ProcessLock lock;
  std::vector<Allocator*> all;
};
Open& open_heaps() {
  static Open* const open = new Open;
  return *open;
}
// Changes when a heap is opened or closed: then threads look up again which cache belongs to which
// heap.
std::atomic<uint64_t> epoch{1};

struct Recent {
  const void* base = nullptr;
  uint64_t epoch = 0;
  Cache* cache = nullptr;
};
constexpr size_t kRecent = 4;
thread_local constinit Recent recent[kRecent] = {};
thread_local constinit bool is_ending = false;  // the thread's caches have been destroyed

}  // namespace

// The caches of a thread; when it ends, they are returned to their heaps.
struct ThreadCaches {
  struct Known {
    uint64_t heap;  // the heap's number, which is never used again
    Cache* cache;
  };
  std::vector<Known> all;

  ~ThreadCaches() {
    is_ending = true;
    for (Recent& r : recent) r = {};
    Open& open = open_heaps();
    const os::Locked guard(open.lock);
    for (const Known& known : all)
      for (Allocator* owner : open.all)
        if (owner->number_ == known.heap) owner->retire(known.cache);
  }

  Cache* find(const void* base) {
    Open& open = open_heaps();
    const os::Locked guard(open.lock);
    std::erase_if(all, [&heaps = open.all](const Known& known) {
      return std::none_of(heaps.begin(), heaps.end(),
                          [&](const Allocator* owner) { return owner->number_ == known.heap; });
    });
    for (Allocator* owner : open.all) {
      if (owner->tiles_.base() != base) continue;
      for (const Known& known : all)
        if (known.heap == owner->number_) return known.cache;
      all.reserve(all.size() + 1);
      all.push_back({owner->number_, owner->take_cache()});
      return all.back().cache;
    }
    return nullptr;
  }
};

namespace {
thread_local ThreadCaches thread_caches;
}

Cache* Allocator::cache_of(const void* base) {
  const auto word = reinterpret_cast<uintptr_t>(base);
  Recent& r = recent[(word >> 21 ^ word >> 12) % kRecent];
  if (is_ending) return nullptr;
  const uint64_t now = epoch.load(std::memory_order_acquire);
  if (r.base == base && r.epoch == now) [[likely]]
    return r.cache;
  Cache* cache = nullptr;
  try {
    cache = thread_caches.find(base);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  if (cache != nullptr) r = {base, now, cache};
  return cache;
}

Allocator* Allocator::owner_of(const void* base) {
  Open& open = open_heaps();
  const os::Locked guard(open.lock);
  for (Allocator* owner : open.all)
    if (owner->tiles_.base() == base) return owner;
  return nullptr;
}

Allocator::~Allocator() = default;

void Allocator::announce() {
  process_ = ::getpid();
  Open& open = open_heaps();
  const os::Locked guard(open.lock);
  open.all.push_back(this);
  number_ = epoch.fetch_add(1, std::memory_order_acq_rel);
}

void Allocator::withdraw() {
  Open& open = open_heaps();
  const os::Locked guard(open.lock);
  std::erase(open.all, this);
  epoch.fetch_add(1, std::memory_order_acq_rel);
}

Status Allocator::restore(const Image& image, uint64_t metadata_offset, bool has_space) {
  for (const Run& run : image.runs) {
    const auto kind = static_cast<RunKind>(run.kind);
    if (kind == RunKind::kMetadata && run.first_tile * kTileBytes != metadata_offset) continue;
    tiles_.claim(run.first_tile, run.tile_count);
    if (kind == RunKind::kLarge || kind == RunKind::kMetadata) {
      const bool is_large = kind == RunKind::kLarge;
      tiles_.set_owner(run.first_tile, run.tile_count,
                       Owner(is_large ? Owner::Kind::kLarge : Owner::Kind::kMetadata, run.value));
      if (is_large) large_bytes_ += run.value;
      continue;
    }
    const unsigned index = cell_index(run.cell_bytes);
    const uint64_t* words = kind == RunKind::kPartial ? image.words.data() + run.value : nullptr;
    for (uint64_t at = 0; at < run.tile_count; at += slab_tiles(index))
      if (Status s = slabs_.add(run.first_tile + at, index, words); !s) return s;
  }
  tiles_.finish_open(has_space);
  return {};
}

Cache* Allocator::take_cache() {
  const std::lock_guard<std::mutex> guard(lock_);
  for (const auto& cache : caches_)
    if (!cache->is_taken) {
      cache->is_taken = true;
      OC_ASSERT(cache->owner == this);
      return cache.get();
    }
  caches_.push_back(std::make_unique<Cache>());
  Cache* cache = caches_.back().get();
  cache->owner = this;
  cache->is_taken = true;
  return cache;
}

void Allocator::retire(Cache* cache) noexcept {
  if (process_ != ::getpid()) return;              // in a forked child, the heap is its parent's
  const std::lock_guard<std::mutex> guard(lock_);  // flush() returns caches, too
  OC_ASSERT(cache->is_taken && cache->owner == this);
  for (unsigned index = 0; index < kCellSizes; ++index) drain(cache->stacks[index], index, 0);
  cache->is_taken = false;
}

void Allocator::hand_back() noexcept {
  const std::lock_guard<std::mutex> guard(lock_);
  for (const auto& cache : caches_)
    for (unsigned index = 0; index < kCellSizes; ++index) drain(cache->stacks[index], index, 0);
  slabs_.drop_empty();
}

namespace {
Error bad_alignment(uint64_t alignment) {
  return {EINVAL, "allocate at a multiple of " + std::to_string(alignment) +
                      " in a persistent heap: powers of two up to 4096 will do"};
}
}  // namespace

Status Allocator::fill(Cache::Stack& stack, unsigned index) {
  void* cells[Cache::kCellsMax];
  const uint32_t wanted = kCachedMax[index] / 2;
  Result<unsigned> got = slabs_.allocate(index, {cells, wanted});
  if (!got) return got.status();
  OC_CHECK(got.value() != 0 && got.value() <= wanted);
  std::copy_n(cells + wanted - got.value(), got.value(), stack.cells);
  stack.count = got.value();
  return {};
}

// Frees the oldest cells.
void Allocator::drain(Cache::Stack& stack, unsigned index, uint32_t keep) noexcept {
  OC_CHECK(stack.count <= Cache::kCellsMax);
  if (stack.count <= keep) return;
  const uint32_t gone = stack.count - keep;
  slabs_.free(index, {stack.cells, gone});
  std::copy(stack.cells + gone, stack.cells + stack.count, stack.cells);
  stack.count = keep;
}

Result<void*> Allocator::allocate(Cache& cache, uint64_t size_bytes, uint64_t alignment) {
  if (alignment > kAlignmentMax || !std::has_single_bit(alignment)) return bad_alignment(alignment);
  const unsigned index = cell_index(size_bytes, alignment);
  if (index == kCellSizes) return cache.owner->allocate_large(size_bytes);
  Cache::Stack& stack = cache.stacks[index];
  if (stack.count == 0)
    if (Status s = cache.owner->fill(stack, index); !s) return s.error();
  return stack.cells[--stack.count];
}

void Allocator::deallocate(Cache& cache, void* object, uint64_t size_bytes,
                           uint64_t alignment) noexcept {
  const unsigned index = cell_index(size_bytes, alignment);
  if (index == kCellSizes) return cache.owner->deallocate_large(object);
  Cache::Stack& stack = cache.stacks[index];
  if (stack.count == kCachedMax[index]) {
    cache.owner->drain(stack, index, kCachedMax[index] / 2);
    // An error concerns only the space of tiles, which the next trim or close tries to release
    // again.
    if (cache.owner->tiles_.should_trim()) static_cast<void>(cache.owner->tiles_.trim());
  }
  OC_CHECK(stack.count < kCachedMax[index]);
  stack.cells[stack.count++] = object;
}

Result<void*> Allocator::allocate(uint64_t size_bytes, uint64_t alignment) {
  if (Cache* cache = cache_of(tiles_.base()); cache != nullptr)
    return allocate(*cache, size_bytes, alignment);
  // The thread is ending, or there is no memory for a cache: allocates a single cell.
  if (alignment > kAlignmentMax || !std::has_single_bit(alignment)) return bad_alignment(alignment);
  const unsigned index = cell_index(size_bytes, alignment);
  if (index == kCellSizes) return allocate_large(size_bytes);
  void* cell = nullptr;
  Result<unsigned> got = slabs_.allocate(index, {&cell, 1});
  if (!got) return got.error();
  return cell;
}

void Allocator::deallocate(void* object, uint64_t size_bytes, uint64_t alignment) noexcept {
  if (Cache* cache = cache_of(tiles_.base()); cache != nullptr)
    return deallocate(*cache, object, size_bytes, alignment);
  const unsigned index = cell_index(size_bytes, alignment);
  if (index == kCellSizes) return deallocate_large(object);
  slabs_.free(index, {&object, 1});
}

void Allocator::deallocate(void* object) noexcept {
  if (object == nullptr) return;
  const auto offset = static_cast<uint64_t>(static_cast<std::byte*>(object) - tiles_.base());
  OC_CHECK(offset / kTileBytes < tiles_.capacity() && "freed what is not of this heap");
  const Slab* slab = tiles_.owner(offset / kTileBytes).slab();
  if (slab == nullptr) return deallocate_large(object);
  deallocate(object, cell_bytes(slab->index), 1);
}

Result<void*> Allocator::allocate_large(uint64_t size_bytes) {
  if (size_bytes > tiles_.capacity() * kTileBytes)
    return Error{ENOMEM, "allocate " + base::format_bytes(size_bytes) +
                             " in a persistent heap: it may grow to " +
                             base::format_bytes(tiles_.capacity() * kTileBytes) +
                             ": open it again with more reserve_bytes"};
  const uint64_t count = (size_bytes + kTileBytes - 1) / kTileBytes;
  Result<uint64_t> first = tiles_.allocate(count);
  if (!first) return first.error();
  tiles_.set_owner(first.value(), count, Owner(Owner::Kind::kLarge, size_bytes));
  large_bytes_ += size_bytes;
  return static_cast<void*>(tiles_.base() + first.value() * kTileBytes);
}

void Allocator::deallocate_large(void* object) noexcept {
  const auto offset = static_cast<uint64_t>(static_cast<std::byte*>(object) - tiles_.base());
  OC_CHECK(offset / kTileBytes < tiles_.capacity() && "freed what is not of this heap");
  const Owner owner = tiles_.owner(offset / kTileBytes);
  OC_CHECK(offset % kTileBytes == 0 && owner.kind() == Owner::Kind::kLarge &&
           "freed what is not in use");
  const uint64_t count = (owner.bytes() + kTileBytes - 1) / kTileBytes;
  large_bytes_ -= owner.bytes();
  tiles_.set_owner(offset / kTileBytes, count, Owner());
  tiles_.free(offset / kTileBytes, count);
  if (tiles_.should_trim()) static_cast<void>(tiles_.trim());
}

}  // namespace outcore::heap::persistent
