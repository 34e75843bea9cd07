// LocalPart: chunks of a FarStore that rest in this process's own memory, out of the budget's room,
// because the servers have no more space.
//
// Any thread; at() on the fault path, too. fetch() makes pages leave, and give() tells the room:
// both REQUIRE no lock for which a transfer of the store waits. A forked child has no chunks.
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

  // As long as chunks are taken their room is kept. Not on the fault path.
  void use_room(std::shared_ptr<Room> room);
  // Adds `count` chunks, which read zero. 0; -ENOSPC, and then none: there is no such room.
  int fetch(uint64_t count, std::vector<uint64_t>* chunks);
  // Their bytes are gone, and the room has them again.
  void give(std::span<const uint64_t> chunks);

  // REQUIRES: fetched, and is_here().
  std::byte* at(uint64_t chunk) const {
    return base_.load(std::memory_order_acquire) + chunk * chunk_bytes_;
  }
  // Not in a forked child.
  bool is_here() const { return ::getpid() == process_; }
  // What could be fetched now, and what was.
  uint64_t free_bytes();
  uint64_t taken_bytes() const { return taken_.load(std::memory_order_relaxed) * chunk_bytes_; }

 private:
  std::shared_ptr<Room> room();
  bool map(const Room& room);

  const uint64_t chunk_bytes_;
  const pid_t process_ = ::getpid();
  std::mutex lock_;  // of what follows, but for what is atomic; never held over take() and give()
  std::shared_ptr<Room> room_;
  std::atomic<std::byte*> base_{nullptr};
  uint64_t mapped_bytes_ = 0;
  uint64_t end_ = 0;            // chunks that were ever used
  std::vector<uint64_t> free_;  // below end_, without bytes
  std::atomic<uint64_t> taken_{0};
};

}  // namespace outcore::store
