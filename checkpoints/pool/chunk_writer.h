// ChunkWriter: gets bytes into a pool: into new blocks, which then replace the old ones in the map.
//
// A block is written before any map refers to it, and the map changes while the gate is passed,
// within a few instructions. So a commit waits for no transfer, and the blocks of a transfer that
// failed are free again. Any thread, the fault path: nothing is allocated from the program's heap.
// Functions return 0 or -errno.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "checkpoints/pool/open_pool.h"
#include "core/os/wait.h"

namespace outcore::versioned {

class ChunkWriter {
 public:
  // Bytes that replace a part of a chunk; nullptr: zeros.
  struct Patch {
    uint64_t skipped = 0;
    const std::byte* bytes = nullptr;
    size_t size_bytes = 0;
  };

  explicit ChunkWriter(OpenPool& pool) : pool_(pool) {}

  // As Pool::write() and Pool::discard(). REQUIRES: the range was inside of the object.
  int write(Object& object, uint64_t offset, std::span<const std::byte> from);
  int discard(Object& object, uint64_t offset, uint64_t size_bytes);
  // Reads the chunk, applies the patches and writes it to a new block.
  int patch_chunk(Object& object, uint64_t chunk, std::span<const Patch> patches);

  // For those who allocate blocks themselves: writes to the file of blocks; and enters a block that
  // was written into the map. REQUIRES of publish(): the caller is inside the gate, and
  // map.prepare(chunk) succeeded. Block 0: a hole.
  int write_data(uint64_t offset, std::span<const std::byte> from);
  int publish(Object& object, uint64_t chunk, uint32_t block, uint64_t sum);
  // All chunks of the object die, and it is removed. REQUIRES: the gate is closed.
  int kill_all(Object& object);

 private:
  int write_stretch(Object& object, uint64_t chunk, uint32_t count, const std::byte* from);

  OpenPool& pool_;
  std::array<os::Lock, 64> stripes_;  // locks of chunks that are written in parts
};

}  // namespace outcore::versioned
