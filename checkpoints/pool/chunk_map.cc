#include "checkpoints/pool/chunk_map.h"

#include <sys/mman.h>

#include <cerrno>
#include <new>

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::versioned {
namespace {

// The place of a slot that is just being set: its two words do not belong together.
constexpr uint64_t kMoving = UINT64_MAX;

void* map_zeros(size_t bytes) {
  void* const got = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return got == MAP_FAILED ? nullptr : got;
}

}  // namespace

std::unique_ptr<ChunkMap> ChunkMap::make() {
  std::unique_ptr<ChunkMap> map(new (std::nothrow) ChunkMap);
  if (map == nullptr) return nullptr;
  map->leaves_ = static_cast<std::atomic<Leaf*>*>(map_zeros(kLeaves * sizeof(Leaf*)));
  if (map->leaves_ == nullptr) return nullptr;
  return map;
}

ChunkMap::~ChunkMap() {
  if (leaves_ == nullptr) return;
  for (uint64_t i = 0; i < leaf_end_.load(); ++i)
    if (Leaf* const leaf = leaves_[i].load()) ::munmap(leaf, sizeof(Leaf));
  ::munmap(leaves_, kLeaves * sizeof(Leaf*));
}

Entry ChunkMap::read(const Slot& slot) {
  while (true) {
    const uint64_t place = slot.place.load(std::memory_order_acquire);
    if (place == kMoving) {  // another thread is between two instructions, with signals blocked
      os::yield();
      continue;
    }
    // A reader that sees the sum which set() stores will, after that, see that the place was
    // moving.
    const uint64_t sum = slot.sum.load(std::memory_order_acquire);
    if (slot.place.load(std::memory_order_relaxed) == place)
      return {static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32), sum};
  }
}

int ChunkMap::prepare(uint64_t chunk) {
  OC_CHECK(chunk < kChunksMax);
  if (leaf_of(chunk) != nullptr) return 0;
  auto* const fresh = static_cast<Leaf*>(map_zeros(sizeof(Leaf)));
  if (fresh == nullptr) return -ENOMEM;
  const uint64_t index = chunk / kLeafEntries;
  OC_ASSERT(index < kLeaves);
  Leaf* none = nullptr;
  if (!leaves_[index].compare_exchange_strong(none, fresh)) {
    ::munmap(fresh, sizeof(Leaf));
    return 0;
  }
  uint64_t end = leaf_end_.load();
  while (end <= index && !leaf_end_.compare_exchange_weak(end, index + 1)) {
  }
  return 0;
}

void ChunkMap::set(uint64_t chunk, Entry entry) {
  OC_CHECK(chunk < kChunksMax);
  Leaf* const leaf = leaf_of(chunk);
  OC_CHECK(leaf != nullptr);
  // Otherwise readers would wait for ever.
  OC_CHECK((uint64_t{entry.birth} << 32 | entry.block) != kMoving);
  Slot& slot = leaf->slots[chunk % kLeafEntries];
  slot.place.exchange(kMoving, std::memory_order_acq_rel);
  slot.sum.store(entry.sum, std::memory_order_release);
  slot.place.store(uint64_t{entry.birth} << 32 | entry.block, std::memory_order_release);
  sets_.fetch_add(1, std::memory_order_acq_rel);
}

void ChunkMap::mark_changed(uint64_t chunk) {
  OC_CHECK(chunk < kChunksMax);
  Leaf* const leaf = leaf_of(chunk);
  OC_CHECK(leaf != nullptr);
  const uint64_t at = chunk % kLeafEntries;
  leaf->changed[at / 64].fetch_or(uint64_t{1} << at % 64);
  leaf->has_changed.store(true);
}

bool ChunkMap::has_changed() const {
  for (uint64_t i = 0; i < leaf_end_.load(); ++i)
    if (const Leaf* const leaf = leaves_[i].load(); leaf != nullptr && leaf->has_changed.load())
      return true;
  return false;
}

uint64_t ChunkMap::memory_bytes() const {
  uint64_t count = 0;
  for (uint64_t i = 0; i < leaf_end_.load(); ++i) count += leaves_[i].load() != nullptr;
  return count * sizeof(Leaf);
}

}  // namespace outcore::versioned
