// PackedValues: values that are stored compressed: they are always whole chunks. See packer.h.
//
// Any thread; the fault path: unpacking takes its memory from a pool.
#pragma once

#include <memory>

#include "core/packing/packer.h"
#include "far/redis/space_pool.h"
#include "far/redis/store_state.h"

namespace outcore::redis {

// The last value that was received for a group. If it is packed, requests for other bytes of the
// same chunk follow it.
struct LastValue {
  // `pool`: of packed values; else nullptr.
  explicit LastValue(SpacePool* pool) : space(pool) {}
  // Gives a request its bytes. REQUIRES: it follows the one that received the value, and is for the
  // same chunk. Returns what that one returned.
  int repeat(ChunkRequest& r) const;

  Space space;
  const std::byte* chunk = nullptr;
  int result = 0, error = 0;
  bool is_short = false;
};

class PackedValues {
 public:
  // `packer`: nullptr unless packed chunks are read or written.
  PackedValues(StoreState& state, std::shared_ptr<const packing::Packer> packer);

  // nullptr: there is no packer. Otherwise it may have had no memory: SpacePool::is_made().
  SpacePool* spaces() const { return spaces_.get(); }
  // Sends a write of a whole value, or its removal.
  void send(Connection& stream, const ChunkRequest& r);
  // Receives the whole value, from which the request gets its bytes. Requests that follow in the
  // batch may want other bytes of it, so `last` keeps the chunk. 0: the request has its result; its
  // error is -EIO if the value is damaged. Other errors are the connection's.
  int receive(Connection& stream, const Reply& reply, ChunkRequest& r, LastValue& last);

 private:
  StoreState& state_;
  const std::shared_ptr<const packing::Packer> packer_;
  const std::unique_ptr<SpacePool> spaces_;  // if there is a packer
};

}  // namespace outcore::redis
