// Slabs: the small objects of a persistent heap. A slab is a run of tiles divided into cells of one
// size; its bitmap is in ordinary memory, so that neither allocating nor freeing touches the bytes
// of the heap. Any thread; threads take and give back cells in batches (persistent_allocator.h).
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
  unsigned index = 0;  // of the size of its cells
  bool is_listed = false;
  Slab *previous = nullptr, *next = nullptr;  // in the list of its size, of those with free cells
  std::unique_ptr<uint64_t[]> words;          // 1: in use, as in the store
};

class Slabs {
 public:
  explicit Slabs(Tiles& tiles) : tiles_(tiles) {}
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;
  ~Slabs();

  // Fills `cells` from the back: at least one, and as many as are cheap to find. Returns how many.
  // They lie close together, and the last element is the lowest. Errors: those of Tiles::allocate.
  Result<unsigned> allocate(unsigned index, std::span<void*> cells);
  // REQUIRES: the cells are in use and of this size. A cell that is not stops the program.
  void free(unsigned index, std::span<void* const> cells) noexcept;

  // While the heap is opened: adds a slab as it was stored. `words` nullptr: all its cells are in
  // use. Error: ENOMEM.
  Status add(uint64_t first_tile, unsigned index, const uint64_t* words);
  // Frees slabs that have no cell in use.
  void drop_empty() noexcept;

  // Adds the runs of all tiles that are in use, and the bitmaps, to the image. REQUIRES: no thread
  // takes or gives meanwhile.
  void describe(Image* image) const;
  uint64_t bytes_in_use() const;  // of cells, those in the caches of threads included

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
