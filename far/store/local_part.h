// LocalPart: chunks of a FarStore that are kept in this process's own memory, out of the budget's
// room, because the servers have no more space.
//
// Any thread; at() may be called on the fault path. allocate() makes pages leave memory, and free()
// informs the room. REQUIRES for both: the caller holds no lock for which a transfer of the store
// waits. A forked child has no chunks.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/store/room.h"

namespace outcore::store {

class LocalPart {
 public:
  explicit LocalPart(uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}
  ~LocalPart();
  LocalPart(const LocalPart&) = delete;
  LocalPart& operator=(const LocalPart&) = delete;

  // The room is kept as long as chunks are in use. Not on the fault path.
  void use_room(std::shared_ptr<Room> room);
  // Appends `count` chunks, which read zero. 0; -ENOSPC: the room is too small, and none was
  // appended.
  int allocate(uint64_t count, std::vector<uint64_t>* chunks);
  // Frees the chunks, and returns their memory to the room.
  void free(std::span<const uint64_t> chunks);

  // REQUIRES: the chunk is allocated; is_here().
  std::byte* at(uint64_t chunk) const {
    return base_.load(std::memory_order_acquire) + chunk * chunk_bytes_;
  }
  // False in a forked child.
  bool is_here() const { return ::getpid() == process_; }
  // How many bytes could be allocated now; the next function: how many are.
  uint64_t free_bytes();
  uint64_t taken_bytes() const { return taken_.load(std::memory_order_relaxed) * chunk_bytes_; }

 private:
  std::shared_ptr<Room> room();
  bool map(const Room& room);

  const uint64_t chunk_bytes_;
  const pid_t process_ = ::getpid();
  std::mutex lock_;  // guards what follows except atomics; not held during calls of the room
  std::shared_ptr<Room> room_;
  std::atomic<std::byte*> base_{nullptr};
  uint64_t mapped_bytes_ = 0;
  uint64_t end_ = 0;            // how many chunks were ever used
  std::vector<uint64_t> free_;  // below end_; they have no memory
  std::atomic<uint64_t> taken_{0};
};

}  // namespace outcore::store
