// Tiles: the space of a persistent heap in units of 64 KiB: which are free, which of those have
// space in the store, and who owns the others. Grows region and store, and gives back.
//
// All of it is ordinary memory: no call touches the heap's own bytes. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "core/base/range_set.h"
#include "core/os/address_space.h"
#include "heaps/persistent/persistent_sizes.h"
#include "outcore/region.h"
#include "outcore/store.h"

namespace outcore::heap::persistent {

struct Slab;

// Who has a tile: a word that any thread may read.
class Owner {
 public:
  enum class Kind : uint8_t { kSlab = 0, kLarge = 1, kInner = 2, kMetadata = 3 };

  Owner() = default;  // nobody: it is free
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
  // The region has `size_bytes`, and may grow to `reserve_bytes`. All tiles but the first are free.
  // Of what it may grow to, `spare_bytes` at the end are for metadata alone: a heap that is full
  // of objects can be closed.
  Status start(Region* region, std::shared_ptr<Store> store, uint64_t reserve_bytes,
               uint64_t spare_bytes);

  // At open, in order of place: these are in use. REQUIRES: finish_open() afterwards.
  void claim(uint64_t first, uint64_t count) { free_.remove(first, count); }
  // `has_space`: what is free may have space in the store, which trim() shall give back.
  void finish_open(bool has_space) {
    if (has_space) backed_ = free_;
  }

  // Tiles for the caller, with space in the store where it can promise that. Errors: ENOSPC, ENOMEM
  // (of addresses, of memory), and what the store says; then nothing has changed.
  Result<uint64_t> take(uint64_t count, bool is_metadata = false);
  // They will be written soon. REQUIRES: taken.
  void prepare(uint64_t first, uint64_t count) noexcept;
  // REQUIRES: taken, and disowned. Never fails: what cannot be noted is lost until the next open.
  void give(uint64_t first, uint64_t count) noexcept;
  // REQUIRES: taken, and disowned. Nobody gets them before the next open.
  void lose(uint64_t count) noexcept;

  Owner owner(uint64_t tile) const {
    return Owner::of(owners_[tile].load(std::memory_order_acquire));
  }
  // The first tile gets the owner, the others kInner; a slab has all of its tiles.
  void set_owner(uint64_t first, uint64_t count, Owner owner);

  // Gives the space of free tiles back to the store. Returns the first error; the rest is tried.
  Status trim();
  bool should_trim() const { return should_trim_.load(std::memory_order_relaxed); }

  uint64_t tile_count() const;    // of the region
  uint64_t end() const;           // after the last that is in use
  uint64_t in_use_count() const;  // with those of the metadata
  std::byte* base() const { return base_; }
  uint64_t capacity() const { return owners_.count(); }  // with what metadata may take alone
  bool is_valid() const;

 private:
  Status grow(uint64_t count, uint64_t limit);
  Status reserve(uint64_t first, uint64_t count, uint64_t run_end);
  int promise(uint64_t first, uint64_t count);
  void note_trim();

  Region* region_ = nullptr;
  std::shared_ptr<Store> store_;
  std::byte* base_ = nullptr;
  os::Table<std::atomic<uint64_t>> owners_;
  std::atomic<bool> should_trim_{false};
  mutable std::mutex lock_;
  std::mutex trim_lock_;
  base::RangeSet free_;
  base::RangeSet backed_;  // of the free ones: those with space in the store
  uint64_t count_ = 0;
  uint64_t limit_ = 0;           // of objects: with more, none is made
  uint64_t trimming_count_ = 0;  // neither free nor in use for the moment
  uint64_t lost_count_ = 0;
  bool can_promise_ = true;
};

}  // namespace outcore::heap::persistent
