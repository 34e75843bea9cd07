// Tiles: the space of a persistent heap in units of 64 KiB: which tiles are free, which of the free
// ones have space in the store, and who owns the others. It enlarges mapping and store, and gives
// space back.
//
// Its data is in ordinary memory: no call touches the bytes of the heap. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "core/base/range_set.h"
#include "core/os/address_space.h"
#include "heaps/persistent/persistent_mapping.h"
#include "heaps/persistent/persistent_sizes.h"
#include "outcore/store.h"

namespace outcore::heap::persistent {

struct Slab;

// Who owns a tile: a word that any thread may read.
class Owner {
 public:
  enum class Kind : uint8_t { kSlab = 0, kLarge = 1, kInner = 2, kMetadata = 3 };

  Owner() = default;  // nobody: the tile is free
  explicit Owner(Slab* slab) : word_(reinterpret_cast<uint64_t>(slab)) {}
  Owner(Kind kind, uint64_t bytes) : word_(bytes << 3 | static_cast<uint64_t>(kind)) {}
  static Owner of(uint64_t word) {
    Owner owner;
    owner.word_ = word;
    return owner;
  }
  uint64_t word() const { return word_; }
  bool is_free() const { return word_ == 0; }
  Kind kind() const { return static_cast<Kind>(word_ & 7); }
  Slab* slab() const { return kind() == Kind::kSlab ? reinterpret_cast<Slab*>(word_) : nullptr; }
  uint64_t bytes() const { return word_ >> 3; }  // of the first tile of large and metadata

 private:
  uint64_t word_ = 0;
};

class Tiles {
 public:
  // The mapping may grow from what it has now to `reserve_bytes`. All tiles but the first are free.
  // The last `spare_bytes` are reserved for metadata, so that a heap that is full of objects can be
  // closed.
  Status start(Mapping* mapping, std::shared_ptr<Store> store, uint64_t reserve_bytes,
               uint64_t spare_bytes);

  // While the heap is opened, in ascending order: these tiles are in use. REQUIRES: finish_open()
  // follows.
  void claim(uint64_t first, uint64_t count) { free_.remove(first, count); }
  // `has_space`: free tiles may have space in the store, which trim() is to give back.
  void finish_open(bool has_space) {
    if (has_space) backed_ = free_;
  }

  // Takes consecutive tiles, with space in the store if the store can promise that, and returns the
  // first. Errors: ENOSPC, ENOMEM (of addresses or memory), and those of the store; then nothing
  // has changed.
  Result<uint64_t> allocate(uint64_t count, bool is_metadata = false);
  // Hint: the tiles will be written soon. REQUIRES: they are allocated.
  void prepare(uint64_t first, uint64_t count) noexcept;
  // Frees the tiles. REQUIRES: they are allocated, without an owner. Never fails: tiles that
  // cannot be noted as free are lost until the heap is opened again.
  void free(uint64_t first, uint64_t count) noexcept;
  // Loses the tiles on purpose: nobody gets them before the heap is opened again. REQUIRES: as
  // free().
  void lose(uint64_t count) noexcept;

  Owner owner(uint64_t tile) const {
    return Owner::of(owners_[tile].load(std::memory_order_acquire));
  }
  // Sets the owner of the first tile, and kInner for the others; all tiles of a slab get its owner.
  void set_owner(uint64_t first, uint64_t count, Owner owner);

  // Gives the space of free tiles back to the store. Goes on after an error, and returns the first
  // one.
  Status trim();
  bool should_trim() const { return should_trim_.load(std::memory_order_relaxed); }

  uint64_t tile_count() const;  // of the mapping
  uint64_t end() const;         // after the last tile in use
  std::byte* base() const { return base_; }
  uint64_t capacity() const { return owners_.count(); }  // with what metadata may take alone
  bool is_valid() const;

 private:
  Status grow(uint64_t count, uint64_t limit);
  Status reserve(uint64_t first, uint64_t count, uint64_t run_end);
  int promise(uint64_t first, uint64_t count);
  void note_trim();

  Mapping* mapping_ = nullptr;
  std::shared_ptr<Store> store_;
  std::byte* base_ = nullptr;
  os::Table<std::atomic<uint64_t>> owners_;
  std::atomic<bool> should_trim_{false};
  mutable std::mutex lock_;
  std::mutex trim_lock_;
  base::RangeSet free_;
  base::RangeSet backed_;  // the free ones that have space in the store
  uint64_t count_ = 0;
  uint64_t limit_ = 0;           // of tiles for objects: no object is allocated beyond it
  uint64_t trimming_count_ = 0;  // for the moment neither free nor in use
  uint64_t lost_count_ = 0;
  bool can_promise_ = true;
};

}  // namespace outcore::heap::persistent
