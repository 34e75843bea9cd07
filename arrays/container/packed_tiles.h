// PackedTiles: the tiles of a compressed array, each in a slot of its own of fixed size.
//
// A slot has room for a tile that compression did not make smaller. The rest of a slot takes no
// space (files are sparse), nor does a tile that was never stored, which reads zero. A tile is
// read, changed and written again as a whole, by one process and thread at a time. Finished arrays
// are not changed in place: a process that dies in the middle would lose a tile. Numbers are
// shuffled before they are compressed: the first bytes of all elements, then the second bytes, and
// so on; floating-point data become smaller that way. docs/reference/arrays-format.md.
#pragma once

#include <array>
#include <mutex>

#include "arrays/container/catalog.h"
#include "arrays/container/container_storage.h"
#include "core/packing/packer.h"

namespace outcore::arrays {

inline constexpr uint64_t kPackedTileBytesMax = uint64_t{256} << 20;

// Bytes of one slot of an array that is kept with `packing`.
uint64_t slot_bytes(uint64_t tile_bytes);
// The shape of tiles of about 1 MiB.
Dims default_tiles(const Dims& dims, uint32_t element_bytes);

// Locks between threads of this process, by the tile's number.
using TileMutexes = std::array<std::mutex, 64>;

class PackedTiles {
 public:
  // `shape` and `tiles` are in the storage's order: the last dimension varies fastest. `mutexes`
  // are those of all who write the array in this process; nullptr: nobody writes. is_shared: other
  // processes write it, too.
  PackedTiles(ContainerStorage& storage, const Entry& entry, Dims shape, Dims tiles,
              const packing::Packer& packer, TileMutexes* mutexes, bool is_shared);

  // Transfers a box from or into dense memory, with up to four threads. Errors: EIO (a tile is
  // damaged), and those of the storage.
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
  // The bytes of those elements of the tile that are inside of the shape.
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
