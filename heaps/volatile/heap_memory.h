// HeapMemory: the memory from which an allocator hands out blocks: a reserved range of addresses,
// of which the part below a growing end may be used and has space in its store. Any thread, except
// grow(). Offsets are relative to base(); ranges are whole system pages. The allocator owns it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outcore::heap {

class HeapMemory {
 public:
  virtual ~HeapMemory() = default;

  std::byte* base() const { return base_; }
  uint64_t capacity_bytes() const { return capacity_bytes_; }  // addresses reserved
  uint64_t page_bytes() const { return page_bytes_; }  // give_back() needs whole pages of this size

  // Moves the end: all bytes below `end` may be used and have space, and the new ones read zero.
  // 0 or -errno: -ENOSPC, -ENOMEM; the caller may try again. One thread at a time.
  virtual int grow(uint64_t end) = 0;
  // Provides space again for a range that was given back. 0 or -errno: -ENOSPC.
  virtual int reserve(uint64_t offset, uint64_t size_bytes) = 0;
  // Releases the space of the range, which reads zero from now on. 0, or -errno: nothing changed.
  virtual int give_back(uint64_t offset, uint64_t size_bytes) = 0;
  // The range reads zero from now on, and keeps its space.
  virtual void zero(uint64_t offset, uint64_t size_bytes) = 0;
  // Hint: the range reads zero and will be written soon.
  virtual void expect(uint64_t offset, uint64_t size_bytes) = 0;

 protected:
  std::byte* base_ = nullptr;
  uint64_t capacity_bytes_ = 0, page_bytes_ = 4096;
};

}  // namespace outcore::heap
