// LocalPart: chunks of a FarStore that rest in this process's own memory, out of the budget's room,
// because the servers have no more space.
//
// Any thread; at() on the fault path, too. fetch() makes pages leave: REQUIRES no lock for which a
// transfer of the store waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "store/room.h"

namespace outcore::store {

class LocalPart {
 public:
  explicit LocalPart(uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}
  ~LocalPart();
  LocalPart(const LocalPart&) = delete;
  LocalPart& operator=(const LocalPart&) = delete;

  // The first room is kept. Not on the fault path.
  void use_room(std::shared_ptr<Room> room);
  // Makes `count` chunks ready to be taken. 0; -ENOSPC: there is no room, or not so much.
  int fetch(uint64_t count);
  // What there is, at most `count`; they read zero.
  void take(uint64_t count, std::vector<uint64_t>* chunks);
  // Its bytes are gone, and the room has it again.
  void give(uint64_t chunk);
  // Gives back what was fetched and not taken.
  void trim();

  // REQUIRES: taken.
  std::byte* at(uint64_t chunk) const {
    return base_.load(std::memory_order_acquire) + chunk * chunk_bytes_;
  }
  // What could be fetched now, and what was taken.
  uint64_t free_bytes();
  uint64_t taken_bytes() const { return taken_.load(std::memory_order_relaxed) * chunk_bytes_; }

 private:
  std::shared_ptr<Room> room();
  bool map(const Room& room);
  void add(uint64_t count);

  const uint64_t chunk_bytes_;
  std::mutex lock_;  // of all but at(); never held over the room's calls
  std::shared_ptr<Room> room_;
  std::atomic<std::byte*> base_{nullptr};
  uint64_t mapped_bytes_ = 0;
  uint64_t end_ = 0;            // chunks that were ever used
  uint64_t ready_ = 0;          // whose room is ours, and which nobody has taken
  std::vector<uint64_t> free_;  // below end_, without bytes
  std::atomic<uint64_t> taken_{0};
};

}  // namespace outcore::store
