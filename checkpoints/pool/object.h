// Object: a named sequence of bytes in an open pool, as it is now. The pool owns it, and whoever
// has a handle.
//
// Handles stay valid when the object is removed: then all calls of the pool return -ENOENT. Any
// thread, the fault path.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "checkpoints/pool/chunk_map.h"

namespace outcore::versioned {

class Object {
 public:
  Object(uint32_t id, std::string name, uint64_t size_bytes, std::unique_ptr<ChunkMap> map)
      : name_(std::move(name)), id_(id), size_bytes_(size_bytes), map_(std::move(map)) {}

  const std::string& name() const { return name_; }
  uint32_t id() const { return id_; }
  uint64_t size_bytes() const { return size_bytes_.load(std::memory_order_acquire); }
  bool is_removed() const { return is_removed_.load(std::memory_order_acquire); }
  // A number that changes whenever contents of the object change, until the pool is closed.
  uint64_t state() const { return map_->sets(); }

  // For the pieces of the pool alone, from here on. Whether the range is inside of the object:
  // a rollback may make objects smaller while they are used.
  bool contains(uint64_t offset, uint64_t range_bytes) const {
    const uint64_t object_bytes = size_bytes();
    return offset <= object_bytes && range_bytes <= object_bytes - offset;
  }
  ChunkMap& map() { return *map_; }
  const ChunkMap& map() const { return *map_; }
  // REQUIRES, both: the lock of the pool.
  void set_size_bytes(uint64_t size_bytes) {
    size_bytes_.store(size_bytes, std::memory_order_release);
  }
  void mark_removed() { is_removed_.store(true, std::memory_order_release); }

 private:
  const std::string name_;
  const uint32_t id_;
  std::atomic<uint64_t> size_bytes_;
  std::atomic<bool> is_removed_{false};
  const std::unique_ptr<ChunkMap> map_;
};

}  // namespace outcore::versioned
