// FarMember: the part of a far:// space that lies on one server or one cluster: a store without
// holes, whose chunks are allocated and freed one by one.
//
// It grows when necessary; freed chunks are used again first. allocate() and free(): one thread at
// a time. The store itself: as its header says.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "far/store/redis_store.h"

namespace outcore::store {

class FarMember {
 public:
  // Errors: those of RedisStore::open.
  static Result<std::unique_ptr<FarMember>> open(const RedisOptions& options,
                                                 const StoreLimits& limits);

  RedisStore& store() const { return *store_; }
  uint64_t chunk_bytes() const { return store_->layout().chunk_bytes; }
  // Bytes that could be allocated now; UINT64_MAX: there is no limit.
  Result<uint64_t> free_bytes();
  // Appends up to `count` chunks that read zero to `chunks`: as many as there is space for. 0, or
  // -errno if a server does not answer.
  int allocate(uint64_t count, std::vector<uint64_t>* chunks);
  // Frees a chunk. REQUIRES: it reads zero.
  void free(uint64_t chunk) { free_.push_back(chunk); }

 private:
  int grow(uint64_t count);

  std::shared_ptr<RedisStore> store_;
  std::vector<uint64_t> free_;
  uint64_t silent_until_ns_ = 0;  // it did not answer: it is not asked for more before this time
  uint64_t used_ = 0, end_ = 0;   // in chunks: allocated so far; the size of the store
};

}  // namespace outcore::store
