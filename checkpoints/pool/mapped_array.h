// MappedArray: a growing array in memory that it gets from the kernel, not from the program's heap.
// So it can grow in a fault handler, and while threads that hold the heap's locks wait for us.
//
// One thread at a time, under a lock of its owner.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::versioned {

template <typename T>
class MappedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  MappedArray() = default;
  MappedArray(MappedArray&& other) noexcept { swap(other); }
  MappedArray& operator=(MappedArray&& other) noexcept {
    swap(other);
    return *this;
  }
  ~MappedArray() { release(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t index) {
    OC_ASSERT(index < size_);
    return data_[index];
  }
  const T& operator[](size_t index) const {
    OC_ASSERT(index < size_);
    return data_[index];
  }

  // False: there is no memory, and nothing has changed.
  bool reserve(size_t count) {
    if (count <= capacity_) return true;
    const size_t bytes =
        base::round_up(std::max(count, capacity_ * 2) * sizeof(T), base::kSystemPage);
    void* const got = data_ == nullptr ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                       : ::mremap(data_, mapped_bytes_, bytes, MREMAP_MAYMOVE);
    if (got == MAP_FAILED) return false;
    data_ = static_cast<T*>(got);
    mapped_bytes_ = bytes;
    capacity_ = bytes / sizeof(T);
    return true;
  }
  bool push_back(const T& value) {
    if (!reserve(size_ + 1)) return false;
    OC_ASSERT(size_ < capacity_);
    data_[size_++] = value;
    return true;
  }
  bool append(const MappedArray& other) {
    if (!reserve(size_ + other.size_)) return false;
    OC_ASSERT(&other != this);
    std::copy(other.begin(), other.end(), data_ + size_);
    size_ += other.size_;
    return true;
  }
  // New elements consist of zero bytes. False: there is no memory.
  bool resize(size_t count) {
    if (!reserve(count)) return false;
    if (count > size_) std::fill(data_ + size_, data_ + count, T{});
    size_ = count;
    return true;
  }
  void truncate(size_t count) { size_ = std::min(size_, count); }
  void clear() { size_ = 0; }
  void release() {
    if (data_ != nullptr) ::munmap(data_, mapped_bytes_);
    data_ = nullptr;
    size_ = capacity_ = mapped_bytes_ = 0;
  }
  void swap(MappedArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  size_t mapped_bytes_ = 0;
};

}  // namespace outcore::versioned
