// Room: memory of a budget in which a store may keep bytes when it has no other space left, so that
// the memory of this machine and of the servers add up (after DLM, HPCS 2008, where what does not
// fit in local memory goes to the servers).
#pragma once

#include <cstdint>
#include <memory>

namespace outcore::store {

class Room {
 public:
  virtual ~Room() = default;
  // Acquires bytes of the budget, for the caller to use. 0; -ENOSPC: pages need the rest, or cannot
  // be evicted in time. Writes pages back, to the calling store, too.
  virtual int acquire(uint64_t bytes) = 0;
  // Returns bytes to the budget. REQUIRES: they were acquired, and are no longer used.
  virtual void release(uint64_t bytes) = 0;
  // What could be acquired now.
  virtual uint64_t free_bytes() const = 0;
  // What could ever be acquired, however the budget changes.
  virtual uint64_t bytes_max() const = 0;
};

// Lodger: a store that can use a room. It gets the room once, before the first transfer.
class Lodger {
 public:
  virtual void use_room(std::shared_ptr<Room> room) = 0;

 protected:
  ~Lodger() = default;
};

}  // namespace outcore::store
