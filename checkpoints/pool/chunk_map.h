// ChunkMap: where each chunk of an object lies, when it was written, and its checksum.
//
// The entries are in leaves of 1,984, and a leaf is made when its first chunk is written, so an
// object costs nothing where it was never written. Entries never move, so readers need no lock.
// get(): any thread, the fault path. set(): any thread, but never two on one chunk; memory comes
// from the kernel.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/assert.h"

namespace outcore::versioned {

// The place of a chunk. Block 0: the chunk is a hole, which reads zero.
struct Entry {
  uint32_t block = 0;
  uint32_t birth = 0;  // the interval in which it was written
  uint64_t sum = 0;    // XXH3 of the whole chunk
  bool operator==(const Entry&) const = default;
};

class ChunkMap {
 public:
  static constexpr uint64_t kLeafEntries = 1984;  // with their bits they fill eight pages
  static constexpr uint64_t kChunksMax = uint64_t{1} << 32;

  // nullptr: there is no memory.
  static std::unique_ptr<ChunkMap> make();
  ~ChunkMap();
  ChunkMap(const ChunkMap&) = delete;
  ChunkMap& operator=(const ChunkMap&) = delete;

  Entry get(uint64_t chunk) const {
    OC_ASSERT(chunk < kChunksMax);
    const Leaf* const leaf = leaf_of(chunk);
    return leaf == nullptr ? Entry{} : read(leaf->slots[chunk % kLeafEntries]);
  }
  // Makes the leaf of the chunk, so that set() cannot fail. 0 or -ENOMEM.
  int prepare(uint64_t chunk);
  // REQUIRES: prepare(chunk) succeeded.
  void set(uint64_t chunk, Entry entry);
  // The chunk is to be part of the next commit.
  void mark_changed(uint64_t chunk);

  // Calls see(chunk, entry) for each entry of [from, to) that is not a hole, in ascending order.
  template <typename See>
  void for_each(uint64_t from, uint64_t to, See see) const {
    const uint64_t end = to < end_hint() ? to : end_hint();
    for (uint64_t chunk = from; chunk < end;) {
      const uint64_t leaf_end = (chunk / kLeafEntries + 1) * kLeafEntries;
      const Leaf* const leaf = leaf_of(chunk);
      for (; leaf != nullptr && chunk < leaf_end && chunk < end; ++chunk)
        if (const Entry entry = read(leaf->slots[chunk % kLeafEntries]); entry.block != 0)
          see(chunk, entry);
      chunk = leaf_end;
    }
  }
  // Calls see(chunk, entry) for each changed chunk, in ascending order, and unmarks it. REQUIRES:
  // no set() at the same time.
  template <typename See>
  void take_changed(See see) {
    for (uint64_t first = 0; first < end_hint(); first += kLeafEntries) {
      Leaf* const leaf = leaf_of(first);
      if (leaf == nullptr || !leaf->has_changed.exchange(false)) continue;
      for (uint64_t w = 0; w < kLeafEntries / 64; ++w)
        for (uint64_t bits = leaf->changed[w].exchange(0); bits != 0; bits &= bits - 1) {
          const uint64_t at = w * 64 + static_cast<uint64_t>(__builtin_ctzll(bits));
          see(first + at, read(leaf->slots[at]));
        }
    }
  }
  bool has_changed() const;
  // How often set() was called. It is not stored.
  uint64_t sets() const { return sets_.load(std::memory_order_acquire); }
  // Bytes of memory that the map takes.
  uint64_t memory_bytes() const;

 private:
  struct Slot {
    std::atomic<uint64_t> place;  // the block; in the upper half the birth
    std::atomic<uint64_t> sum;
  };
  struct Leaf {
    Slot slots[kLeafEntries];
    std::atomic<uint64_t> changed[kLeafEntries / 64];
    std::atomic<bool> has_changed;
  };
  static_assert(sizeof(Leaf) <= 32768 && kLeafEntries % 64 == 0);
  static constexpr uint64_t kLeaves = kChunksMax / kLeafEntries + 1;

  ChunkMap() = default;
  static Entry read(const Slot& slot);
  Leaf* leaf_of(uint64_t chunk) const {
    return leaves_[chunk / kLeafEntries].load(std::memory_order_acquire);
  }
  uint64_t end_hint() const { return leaf_end_.load(std::memory_order_acquire) * kLeafEntries; }

  std::atomic<Leaf*>* leaves_ = nullptr;
  std::atomic<uint64_t> leaf_end_{0};  // there is no leaf at or after it
  std::atomic<uint64_t> sets_{0};
};

}  // namespace outcore::versioned
