// PlaceTable: where each chunk of a store is that lies on several other stores: on which of them,
// and in which of its chunks.
//
// find(): any thread, the fault path; it loads two words. set() and clear() for a chunk: one thread
// at a time. Memory is allocated for 2^16 chunks at a time, when the first of them gets a place.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "core/base/assert.h"

namespace outcore::store {

struct Place {
  uint32_t member = 0;
  uint64_t chunk = 0;
};

class PlaceTable {
 public:
  static constexpr uint64_t kChunksMax = uint64_t{1} << 30;

  PlaceTable() : leaves_(new std::array<std::atomic<Leaf*>, kChunksMax / kLeafChunks>()) {}
  ~PlaceTable();
  PlaceTable(const PlaceTable&) = delete;
  PlaceTable& operator=(const PlaceTable&) = delete;

  // False: the chunk has no place.
  bool find(uint64_t chunk, Place* place) const {
    OC_ASSERT(chunk < kChunksMax);
    const Leaf* const leaf = (*leaves_)[chunk / kLeafChunks].load(std::memory_order_acquire);
    const uint64_t word =
        leaf == nullptr ? 0 : leaf->word[chunk % kLeafChunks].load(std::memory_order_acquire);
    if (word == 0) return false;
    *place = {static_cast<uint32_t>((word - 1) >> kChunkBits), (word - 1) & kChunkMask};
    return true;
  }
  bool has(uint64_t chunk) const {
    Place place;
    return find(chunk, &place);
  }
  // 0 or -ENOMEM. REQUIRES, here and below: chunk < kChunksMax.
  int set(uint64_t chunk, const Place& place);
  void clear(uint64_t chunk);

 private:
  static constexpr uint64_t kLeafChunks = uint64_t{1} << 16;
  static constexpr unsigned kChunkBits = 48;
  static constexpr uint64_t kChunkMask = (uint64_t{1} << kChunkBits) - 1;
  struct Leaf {
    std::atomic<uint64_t> word[kLeafChunks];  // 0, or the place + 1
  };
  std::unique_ptr<std::array<std::atomic<Leaf*>, kChunksMax / kLeafChunks>> leaves_;
};

}  // namespace outcore::store
