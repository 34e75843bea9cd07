// Array<T>: a region as a typed array, with bounds and alignment checked once, at creation.
#pragma once

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "outcore/region.h"
#include "outcore/runtime.h"

namespace outcore {

// Owns its region. T must be trivially copyable, because the store holds the bytes of T. Use
// Array<const T> for read-only regions. Element access is unchecked, as with std::span.
template <typename T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>,
                "the store holds the bytes of T: T must be trivially copyable");

 public:
  // Makes an array of `count` elements that starts at byte `offset` of the region, which it takes
  // over; count 0: as many as fit. Errors: EINVAL (past the end, misaligned, size not a multiple),
  // EACCES (T is not const, and the region is read-only).
  static Result<Array> of(Region region, uint64_t offset = 0, uint64_t count = 0) {
    const auto refuse = [&](int code, std::string why) {
      return Error{code, "array over " + region.uri() + ": " + std::move(why)};
    };
    if (!region.is_mapped()) return Error{EINVAL, "array over a region that is not mapped"};
    if (!std::is_const_v<T> && region.access() == Access::kReadOnly)
      return refuse(EACCES, "the region is read-only: use Array<const T>, or map it read-write");
    if (offset % alignof(T) != 0)
      return refuse(EINVAL, "offset " + std::to_string(offset) +
                                " is not a multiple of the alignment " +
                                std::to_string(alignof(T)));
    if (offset > region.size_bytes())
      return refuse(EINVAL, "offset " + std::to_string(offset) + " is past its end at " +
                                std::to_string(region.size_bytes()));
    const uint64_t room_bytes = region.size_bytes() - offset;
    if (count == 0) {
      if (room_bytes % sizeof(T) != 0)
        return refuse(EINVAL, std::to_string(room_bytes) +
                                  " bytes are not a multiple of the element's " +
                                  std::to_string(sizeof(T)) + ": give a count");
      count = room_bytes / sizeof(T);
    }
    if (count > room_bytes / sizeof(T))
      return refuse(EINVAL, std::to_string(count) + " elements of " + std::to_string(sizeof(T)) +
                                " bytes do not fit in " + std::to_string(room_bytes));
    return Array(std::move(region), offset, count);
  }

  T* data() const { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) const { return data_[i]; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  std::span<T> span() const { return {data_, size_}; }
  Region& region() { return region_; }
  const Region& region() const { return region_; }

 private:
  Array(Region region, uint64_t offset, uint64_t count)
      : region_(std::move(region)),
        data_(reinterpret_cast<T*>(region_.data() + offset)),
        size_(static_cast<size_t>(count)) {}
  Region region_;
  T* data_;
  size_t size_;
};

}  // namespace outcore
