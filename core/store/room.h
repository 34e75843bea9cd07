// Room: memory of a budget that a store may keep bytes in once it has no other space, so that the
// capacities of this machine and of the others add up (after DLM, HPCS 2008, where what does not
// fit in local memory goes to the servers).
#pragma once

#include <cstdint>
#include <memory>

namespace outcore::store {

class Room {
 public:
  virtual ~Room() = default;
  // 0: so much less of the budget is for pages, and so much the caller's to fill. -ENOSPC: pages
  // need what is left, or cannot leave it in time. Writes pages back, to the asking store too.
  virtual int take(uint64_t bytes) = 0;
  // REQUIRES: taken, and freed.
  virtual void give(uint64_t bytes) = 0;
  // What could be taken now.
  virtual uint64_t free_bytes() const = 0;
  // What could ever be taken, whatever becomes of the budget.
  virtual uint64_t bytes_max() const = 0;
};

// Lodger: a store that can use a room. It is told of it before the first transfer, once.
class Lodger {
 public:
  virtual void use_room(std::shared_ptr<Room> room) = 0;

 protected:
  ~Lodger() = default;
};

}  // namespace outcore::store
