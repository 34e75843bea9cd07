// FarMember: one server's, or one cluster's, part of a space in far memory: a store without holes,
// of which chunks are taken and given back.
//
// It grows when it has to; what is given back is taken again first. take() and give() by one thread
// at a time; the store as its header says.
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
  // Bytes that could be taken now; UINT64_MAX: without limit.
  Result<uint64_t> free_bytes();
  // Appends up to `count` chunks that read zero, as many as there is space for. 0, or -errno of a
  // server that does not answer.
  int take(uint64_t count, std::vector<uint64_t>* chunks);
  // REQUIRES: it reads zero.
  void give(uint64_t chunk) { free_.push_back(chunk); }

 private:
  int grow(uint64_t count);

  std::shared_ptr<RedisStore> store_;
  std::vector<uint64_t> free_;
  uint64_t silent_until_ns_ = 0;  // it is not asked for more before: it did not answer
  uint64_t used_ = 0, end_ = 0;   // chunks: ever taken, in the store
};

}  // namespace outcore::store
