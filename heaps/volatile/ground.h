// Ground: the memory that an allocator hands out parts of: addresses that may be used up to an end
// that moves, with space behind them. Any thread, but what grow() says. Offsets count from base();
// ranges are whole system pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outcore::heap {

class Ground {
 public:
  virtual ~Ground() = default;

  std::byte* base() const { return base_; }
  uint64_t capacity_bytes() const { return capacity_bytes_; }  // of addresses
  uint64_t page_bytes() const { return page_bytes_; }          // give_back() takes whole ones

  // The bytes below `end` may be used, have space, and those that are new read zero. 0 or -errno:
  // -ENOSPC, -ENOMEM; then it may be tried again. One thread at a time.
  virtual int grow(uint64_t end) = 0;
  // Space for a range that was given back. 0 or -errno: -ENOSPC.
  virtual int reserve(uint64_t offset, uint64_t size_bytes) = 0;
  // The range reads zero from now on, and its space is others'. 0 or -errno: it is as it was.
  virtual int give_back(uint64_t offset, uint64_t size_bytes) = 0;
  // The range reads zero from now on, and keeps its space.
  virtual void zero(uint64_t offset, uint64_t size_bytes) = 0;
  // The range reads zero and will be written soon.
  virtual void expect(uint64_t offset, uint64_t size_bytes) = 0;

 protected:
  std::byte* base_ = nullptr;
  uint64_t capacity_bytes_ = 0, page_bytes_ = 4096;
};

}  // namespace outcore::heap
