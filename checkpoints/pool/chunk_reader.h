// ChunkReader: bytes of an object, found by its map and checked by their checksums.
//
// Any thread, beside writers: an entry is read, then its block, then the checksum is compared. A
// chunk that a writer moved meanwhile has another entry then, and is read again; one that has not,
// and is not what was written, is EIO, with the place in Trouble. read(): the fault path.
#pragma once

#include <cstdint>
#include <span>

#include "checkpoints/pool/chunk_buffers.h"
#include "checkpoints/pool/chunk_map.h"
#include "checkpoints/pool/disk.h"
#include "checkpoints/pool/trouble.h"
#include "outcore/store.h"

namespace outcore::versioned {

class ChunkReader {
 public:
  // `folder` lives as long as the reader.
  ChunkReader(File& data, uint32_t chunk_bytes, const char* folder, Trouble& trouble)
      : data_(data), chunk_bytes_(chunk_bytes), folder_(folder), trouble_(trouble) {}
  bool open() { return buffers_.open(chunk_bytes_); }  // false: no memory

  // 0 or -errno; -EIO: the bytes are not those that were written.
  int read(const ChunkMap& map, const char* object, uint64_t offset, std::span<std::byte> into);
  // The requests of the batch that are no writes; sets their results. May allocate.
  void transfer(const ChunkMap& map, const char* object, std::span<StoreRequest> batch);
  // The whole chunk, also past the object's end.
  int read_chunk(const ChunkMap& map, const char* object, uint64_t chunk,
                 std::span<std::byte> into);
  ChunkBuffers& buffers() { return buffers_; }

 private:
  int read_stretch(const ChunkMap& map, const char* object, uint64_t chunk, uint64_t count,
                   std::byte* into);

  File& data_;
  const uint32_t chunk_bytes_;
  const char* const folder_;
  Trouble& trouble_;
  ChunkBuffers buffers_;
};

}  // namespace outcore::versioned
