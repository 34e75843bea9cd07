// Slabs: small objects of a persistent heap: runs of tiles that are divided into cells of one size,
// and a bitmap of each in ordinary memory, so that neither allocating nor freeing touches the
// heap's own bytes. Any thread; threads take and give cells in batches (persistent_cache.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "heaps/persistent/persistent_image.h"
#include "heaps/persistent/persistent_sizes.h"
#include "heaps/persistent/persistent_tiles.h"

namespace outcore::heap::persistent {

struct Slab {
  uint64_t first_tile = 0;
  uint32_t cells = 0, free_cells = 0;
  uint32_t hint = 0;   // no word of the bitmap before it has a free cell
  unsigned index = 0;  // of its cells' size
  bool is_listed = false;
  Slab *previous = nullptr, *next = nullptr;  // in the list of its size, of those with free cells
  std::unique_ptr<uint64_t[]> words;          // 1: in use, as on media
};

class Slabs {
 public:
  explicit Slabs(Tiles& tiles) : tiles_(tiles) {}
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;
  ~Slabs();

  // Fills `cells` from the back, as far as cheap, and at least one: how many. Those lie close
  // together, the lowest last. Errors: those of Tiles::take.
  Result<unsigned> take(unsigned index, std::span<void*> cells);
  // REQUIRES: cells in use, of that size (a cell that is not stops the program).
  void give(unsigned index, std::span<void* const> cells) noexcept;

  // At open: a slab as it was. nullptr words: all its cells are in use. ENOMEM.
  Status add(uint64_t first_tile, unsigned index, const uint64_t* words);
  // Frees slabs that have no cell in use.
  void drop_empty() noexcept;

  // The tiles' owners as runs, with the bitmaps. REQUIRES: nobody takes or gives.
  void describe(Image* image) const;
  uint64_t bytes_in_use() const;  // of cells, those that threads keep included

 private:
  struct Size {
    mutable std::mutex lock;
    Slab* partial = nullptr;
    uint64_t cells_in_use = 0;
  };

  Result<Slab*> make(unsigned index);
  void list(Size& size, Slab* slab);
  void unlist(Size& size, Slab* slab);
  void drop(Size& size, Slab* slab) noexcept;

  Tiles& tiles_;
  std::array<Size, kCellSizes> sizes_;
};

}  // namespace outcore::heap::persistent
