// BatchWriter: writes a batch of requests as few large transfers to a pool's heap of blocks.
//
// Chunks get blocks in ascending order. Chunks in neighbouring blocks are written in one transfer;
// if their memory is not contiguous, it is gathered in a buffer first. Parts of the same chunk are
// laid over it together. One thread; allocates.
#pragma once

#include <span>
#include <vector>

#include "checkpoints/pool/chunk_writer.h"
#include "outcore/store.h"

namespace outcore::versioned {

class BatchWriter {
 public:
  BatchWriter(OpenPool& pool, ChunkWriter& writer, Object& object)
      : pool_(pool), writer_(writer), object_(object) {}
  // Carries out those requests that are writes, and sets their results.
  void write(std::span<StoreRequest> batch);

 private:
  // A part of a request that lies within one chunk.
  struct Part {
    uint64_t chunk;
    uint64_t skipped;
    const std::byte* bytes;
    size_t size_bytes;
    uint32_t request;
  };
  // A whole chunk to write.
  struct Whole {
    uint64_t chunk;
    const std::byte* bytes;
    size_t first_part, end_part;  // the parts that share its outcome
    uint64_t sum = 0;
    uint32_t block = 0;
    uint32_t transfer = 0;
  };

  void cut(std::span<StoreRequest> batch);
  void add_chunk(size_t first_part, size_t end_part);
  void flush();
  int allocate();
  void join();
  void publish();
  void set_result(size_t first_part, size_t end_part, int error);

  OpenPool& pool_;
  ChunkWriter& writer_;
  Object& object_;
  std::span<StoreRequest> batch_;
  std::vector<Part> parts_;
  std::vector<Whole> wholes_;
  std::vector<StoreRequest> transfers_;
  size_t gathered_bytes_ = 0;  // in use of the buffer
};

}  // namespace outcore::versioned
