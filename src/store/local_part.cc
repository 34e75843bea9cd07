#include "store/local_part.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/units.h"
#include "os/address_space.h"

namespace outcore::store {

LocalPart::~LocalPart() {
  trim();
  std::byte* const base = base_.load();
  if (base == nullptr) return;
  os::free_table(base, mapped_bytes_);
  if (const uint64_t taken = taken_bytes(); taken != 0) room_->give(taken);
}

void LocalPart::use_room(std::shared_ptr<Room> room) {
  const std::lock_guard<std::mutex> guard(lock_);
  if (room_ == nullptr) room_ = std::move(room);
}

std::shared_ptr<Room> LocalPart::room() {
  const std::lock_guard<std::mutex> guard(lock_);
  return room_;
}

int LocalPart::fetch(uint64_t count) {
  const std::shared_ptr<Room> room = this->room();
  if (room == nullptr || count > room->free_bytes() / chunk_bytes_) return -ENOSPC;
  if (!map(*room)) return -ENOSPC;
  if (const int error = room->take(count * chunk_bytes_); error != 0) return error;
  const std::lock_guard<std::mutex> guard(lock_);
  const uint64_t most = mapped_bytes_ / chunk_bytes_;
  OC_ASSERT(taken_.load() + ready_ <= most);
  const uint64_t fits = std::min(count, most - taken_.load() - ready_);
  ready_ += fits;
  if (fits == count) return 0;
  // The budget has grown since the addresses were reserved: what does not fit goes back.
  room->give((count - fits) * chunk_bytes_);
  return -ENOSPC;
}

// Addresses for all that can ever be taken, once.
bool LocalPart::map(const Room& room) {
  const std::lock_guard<std::mutex> guard(lock_);
  if (base_.load() != nullptr) return true;
  mapped_bytes_ = base::round_up(room.free_bytes(), chunk_bytes_);
  try {
    free_.reserve(mapped_bytes_ / chunk_bytes_);  // give() needs no memory
  } catch (const std::bad_alloc&) {
    return false;
  }
  const auto table = os::allocate_table(mapped_bytes_);
  if (table) base_.store(table.value(), std::memory_order_release);
  return table.ok();
}

void LocalPart::take(uint64_t count, std::vector<uint64_t>* chunks) {
  const std::lock_guard<std::mutex> guard(lock_);
  for (; count > 0 && ready_ > 0; --count, --ready_) {
    if (free_.empty()) free_.push_back(end_++);
    chunks->push_back(free_.back());
    free_.pop_back();
    taken_.fetch_add(1, std::memory_order_relaxed);
  }
}

void LocalPart::give(uint64_t chunk) {
  std::byte* const bytes = at(chunk);
  if (::madvise(bytes, chunk_bytes_, MADV_DONTNEED) != 0) std::memset(bytes, 0, chunk_bytes_);
  std::shared_ptr<Room> room;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    OC_CHECK(taken_.load() > 0);
    free_.push_back(chunk);
    taken_.fetch_sub(1, std::memory_order_relaxed);
    room = room_;
  }
  room->give(chunk_bytes_);
}

void LocalPart::trim() {
  std::shared_ptr<Room> room;
  uint64_t bytes = 0;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    bytes = std::exchange(ready_, 0) * chunk_bytes_;
    room = room_;
  }
  if (bytes != 0) room->give(bytes);
}

uint64_t LocalPart::free_bytes() {
  const std::shared_ptr<Room> room = this->room();
  return room == nullptr ? 0 : base::round_down(room->free_bytes(), chunk_bytes_);
}

}  // namespace outcore::store
