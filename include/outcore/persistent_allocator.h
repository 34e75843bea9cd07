// PersistentAllocator<T>: allocates memory of a persistent heap for containers that are stored in
// it. Its pointers are valid wherever the heap is mapped (boost::interprocess::offset_ptr). Needs
// Boost's headers.
#pragma once

#include <boost/interprocess/offset_ptr.hpp>
#include <cstddef>
#include <limits>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "outcore/persistent_core.h"

namespace outcore {

template <typename T>
using PersistentPointer = boost::interprocess::offset_ptr<T>;

// Thrown by containers when the heap has no memory: a std::bad_alloc with the reason.
class PersistentHeapFull : public std::bad_alloc {
 public:
  explicit PersistentHeapFull(Error error) : error_(std::move(error)) {}
  const char* what() const noexcept override { return error_.message.c_str(); }
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

// Any thread. Copies may be stored in the heap, as containers do. Eight bytes: the place of its
// heap.
template <typename T>
class PersistentAllocator {
 public:
  using value_type = T;
  using pointer = PersistentPointer<T>;
  using const_pointer = PersistentPointer<const T>;
  using void_pointer = PersistentPointer<void>;
  using const_void_pointer = PersistentPointer<const void>;
  using reference = std::add_lvalue_reference_t<T>;
  using const_reference = std::add_lvalue_reference_t<const T>;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using is_always_equal = std::false_type;
  template <typename U>
  struct rebind {
    using other = PersistentAllocator<U>;
  };

  explicit PersistentAllocator(std::byte* heap_base) : heap_(heap_base) {}
  template <typename U>
  PersistentAllocator(const PersistentAllocator<U>& other)  // NOLINT(google-explicit-constructor)
      : heap_(other.heap_base()) {}

  // Throws PersistentHeapFull, and std::bad_array_new_length.
  pointer allocate(size_type count, const_void_pointer hint = nullptr) {
    static_cast<void>(hint);
    if (count > max_size()) throw std::bad_array_new_length();  // banned-ok: as containers expect
    Error error;
    void* memory = persistent_allocate(heap_.get(), count * sizeof(T), alignof(T), &error);
    if (memory == nullptr)
      throw PersistentHeapFull(std::move(error));  // banned-ok: as containers expect
    return pointer(static_cast<T*>(memory));
  }
  void deallocate(const pointer& memory, size_type count) noexcept {
    persistent_deallocate(heap_.get(), const_cast<std::remove_cv_t<T>*>(memory.get()),
                          count * sizeof(T), alignof(T));
  }
  size_type max_size() const noexcept {
    return static_cast<size_type>(std::numeric_limits<difference_type>::max()) / sizeof(T);
  }

  std::byte* heap_base() const { return heap_.get(); }
  template <typename U>
  bool operator==(const PersistentAllocator<U>& other) const {
    return heap_base() == other.heap_base();
  }

 private:
  PersistentPointer<std::byte> heap_;
};

}  // namespace outcore
