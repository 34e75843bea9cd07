// ChunkReader: reads the bytes of an object: finds their chunks by the object's map and checks
// their checksums.
//
// Any thread, while others write: it reads the map's entry, then the block, then compares the
// checksum. If they differ and the entry has changed, a writer moved the chunk, which is read
// again; if the entry is the same, the bytes are damaged: EIO, and IoFailure gets the place. read()
// is fit for the fault path.
#pragma once

#include <cstdint>
#include <span>

#include "checkpoints/pool/chunk_buffers.h"
#include "checkpoints/pool/chunk_map.h"
#include "checkpoints/pool/disk.h"
#include "checkpoints/pool/io_failure.h"
#include "outcore/store.h"

namespace outcore::versioned {

class ChunkReader {
 public:
  // REQUIRES: `folder` outlives the reader.
  ChunkReader(File& data, uint32_t chunk_bytes, const char* folder, IoFailure& last_failure)
      : data_(data), chunk_bytes_(chunk_bytes), folder_(folder), last_failure_(last_failure) {}
  bool open() { return buffers_.open(chunk_bytes_); }  // false: no memory

  // 0 or -errno; -EIO: the bytes are not those that were written.
  int read(const ChunkMap& map, const char* object, uint64_t offset, std::span<std::byte> into);
  // Carries out the reads of the batch and sets their results; skips its writes. May allocate.
  void transfer(const ChunkMap& map, const char* object, std::span<StoreRequest> batch);
  // Reads the whole chunk, even where it extends past the object's end.
  int read_chunk(const ChunkMap& map, const char* object, uint64_t chunk,
                 std::span<std::byte> into);
  ChunkBuffers& buffers() { return buffers_; }

 private:
  int read_stretch(const ChunkMap& map, const char* object, uint64_t chunk, uint64_t count,
                   std::byte* into);

  File& data_;
  const uint32_t chunk_bytes_;
  const char* const folder_;
  IoFailure& last_failure_;
  ChunkBuffers buffers_;
};

}  // namespace outcore::versioned
