// PackedTiles: the tiles of a compressed array, each by itself in a slot of fixed size.
//
// A slot has room for a tile that did not become smaller; what a tile does not need of it takes no
// space (files are sparse), and so does a tile that was never stored, which reads zero. A tile is
// read, changed and written again as a whole, by one process and thread at a time; so arrays that
// are finished, whose tiles would be lost by a death in the middle, are not changed in place.
// Elements of numbers are shuffled before they are packed: all first bytes, all second bytes …,
// after which floating-point data become smaller. docs/reference/arrays-format.md.
#pragma once

#include <array>
#include <mutex>

#include "arrays/container/catalog.h"
#include "arrays/container/container_storage.h"
#include "core/packing/packer.h"

namespace outcore::arrays {

inline constexpr uint64_t kPackedTileBytesMax = uint64_t{256} << 20;

// Of an array that is kept with `packing`: bytes of one slot.
uint64_t slot_bytes(uint64_t tile_bytes);
// Tiles of about 1 MiB.
Dims default_tiles(const Dims& dims, uint32_t element_bytes);

// Threads of this process, a tile each.
using TileMutexes = std::array<std::mutex, 64>;

class PackedTiles {
 public:
  // `shape` and `tiles` as the storage has them: last dimension fastest. `mutexes`: of those who
  // write it in this process; is_shared: other processes write it, too; null: nobody writes.
  PackedTiles(ContainerStorage& storage, const Entry& entry, Dims shape, Dims tiles,
              const packing::Packer& packer, TileMutexes* mutexes, bool is_shared);

  // A box, from or into dense memory. By up to four threads. Errors: EIO (a tile is damaged), those
  // of the storage.
  Status write(const std::byte* from, const Dims& at, const Dims& box) const;
  Status read(std::byte* into, const Dims& at, const Dims& box) const;

 private:
  struct Space;
  struct Task {
    uint64_t number;
    Runs runs;
  };
  template <typename Each>
  Status each(const Dims& at, const Dims& box, const Each& act) const;
  Status write_tile(const Task& task, const std::byte* from, Space& space) const;
  Status read_tile(uint64_t number, Space& space) const;
  uint64_t place(uint64_t number) const { return offset_ + number * slot_bytes_; }
  // The elements of it that the shape has.
  uint64_t used_bytes(uint64_t number) const;

  ContainerStorage& storage_;
  const std::string name_;
  const uint64_t offset_;
  const uint32_t element_bytes_;
  const Dims shape_, tiles_;
  const packing::Packer& packer_;
  const uint64_t tile_bytes_, slot_bytes_;
  const bool is_shuffled_;
  TileMutexes* const mutexes_;
  const bool is_shared_;
};

}  // namespace outcore::arrays
