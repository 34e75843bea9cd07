#include "far/store/local_part.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/address_space.h"

namespace outcore::store {

LocalPart::~LocalPart() {
  if (!is_here() || base_.load() == nullptr) return;
  OC_CHECK(taken_.load() == 0 || room_ != nullptr);
  os::free_table(base_.load(), mapped_bytes_);
  if (const uint64_t taken = taken_bytes(); taken != 0) room_->release(taken);
}

void LocalPart::use_room(std::shared_ptr<Room> room) {
  if (!is_here()) return;
  const std::lock_guard<std::mutex> guard(lock_);
  if (taken_.load() == 0) room_ = std::move(room);
}

std::shared_ptr<Room> LocalPart::room() {
  const std::lock_guard<std::mutex> guard(lock_);
  return room_;
}

int LocalPart::allocate(uint64_t count, std::vector<uint64_t>* chunks) {
  if (!is_here()) return -ENOSPC;
  const std::shared_ptr<Room> room = this->room();
  if (room == nullptr || count > room->free_bytes() / chunk_bytes_ || !map(*room)) return -ENOSPC;
  chunks->reserve(chunks->size() + count);
  if (const int error = room->acquire(count * chunk_bytes_); error != 0) return error;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    const uint64_t most = mapped_bytes_ / chunk_bytes_;
    if (room == room_ && taken_.load() + count <= most) {
      taken_.fetch_add(count, std::memory_order_relaxed);
      for (; count > 0; --count) {
        if (free_.empty()) free_.push_back(end_++);
        chunks->push_back(free_.back());
        free_.pop_back();
      }
      OC_CHECK(end_ <= most && end_ - free_.size() == taken_.load());
      return 0;
    }
  }
  room->release(count * chunk_bytes_);
  return -ENOSPC;
}

// Reserves addresses for everything that can ever be allocated, once.
bool LocalPart::map(const Room& room) {
  OC_CHECK(chunk_bytes_ != 0);
  const uint64_t most = base::round_up(room.bytes_max(), chunk_bytes_);
  const std::lock_guard<std::mutex> guard(lock_);
  if (base_.load() != nullptr) return true;
  try {
    free_.reserve(most / chunk_bytes_);  // so that free() needs no memory
  } catch (const std::bad_alloc&) {
    return false;
  }
  const auto table = os::allocate_table(most);
  if (!table) return false;
  mapped_bytes_ = most;
  // If the program has called mlockall(MCL_FUTURE), all of this would be locked in memory.
  ::munlock(table.value(), most);
  ::madvise(table.value(), most, MADV_DONTNEED);
  ::madvise(table.value(), most, MADV_DONTFORK);
  base_.store(table.value(), std::memory_order_release);
  return true;
}

void LocalPart::free(std::span<const uint64_t> chunks) {
  if (chunks.empty() || !is_here()) return;
  for (const uint64_t chunk : chunks) {
    std::byte* const bytes = at(chunk);
    if (::madvise(bytes, chunk_bytes_, MADV_DONTNEED) == 0) continue;
    ::munlock(bytes, chunk_bytes_);
    if (::madvise(bytes, chunk_bytes_, MADV_DONTNEED) != 0) std::memset(bytes, 0, chunk_bytes_);
  }
  std::shared_ptr<Room> room;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    OC_CHECK(taken_.load() >= chunks.size());
    free_.insert(free_.end(), chunks.begin(), chunks.end());
    taken_.fetch_sub(chunks.size(), std::memory_order_relaxed);
    OC_CHECK(end_ - free_.size() == taken_.load());
    room = room_;
  }
  room->release(chunks.size() * chunk_bytes_);
}

uint64_t LocalPart::free_bytes() {
  const std::shared_ptr<Room> room = is_here() ? this->room() : nullptr;
  return room == nullptr ? 0 : base::round_down(room->free_bytes(), chunk_bytes_);
}

}  // namespace outcore::store
