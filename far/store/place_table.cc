#include "far/store/place_table.h"

#include <sys/mman.h>

#include <cerrno>

#include "core/base/assert.h"

namespace outcore::store {

PlaceTable::~PlaceTable() {
  for (std::atomic<Leaf*>& leaf : *leaves_)
    if (leaf.load() != nullptr) ::munmap(leaf.load(), sizeof(Leaf));
}

int PlaceTable::set(uint64_t chunk, const Place& place) {
  OC_CHECK(chunk < kChunksMax && place.chunk < kChunkMask);
  OC_CHECK(place.member <= UINT16_MAX);
  std::atomic<Leaf*>& at = (*leaves_)[chunk / kLeafChunks];
  if (at.load(std::memory_order_relaxed) == nullptr) {
    void* const memory = ::mmap(nullptr, sizeof(Leaf), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return -ENOMEM;
    at.store(static_cast<Leaf*>(memory), std::memory_order_release);
  }
  const uint64_t word = (uint64_t{place.member} << kChunkBits | place.chunk) + 1;
  at.load(std::memory_order_relaxed)
      ->word[chunk % kLeafChunks]
      .store(word, std::memory_order_release);
  return 0;
}

void PlaceTable::clear(uint64_t chunk) {
  OC_CHECK(chunk < kChunksMax);
  Leaf* const leaf = (*leaves_)[chunk / kLeafChunks].load(std::memory_order_relaxed);
  if (leaf != nullptr) leaf->word[chunk % kLeafChunks].store(0, std::memory_order_release);
}

}  // namespace outcore::store
