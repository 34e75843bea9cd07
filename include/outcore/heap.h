// Heap: allocation larger than memory: as malloc, but the bytes rest in a store, and a runtime's
// budget says how much of them is in memory.
//
//   auto heap = outcore::Heap::create(runtime).value();
//   std::vector<double, outcore::Allocator<double>> v(outcore::Allocator<double>{heap});
//   auto* words = static_cast<uint64_t*>(heap.allocate(100ull << 30));
//
// Several heaps, on different stores and runtimes, may live in one process. Any thread may call
// anything, but what ends or moves a heap. No call touches the heap's memory while it holds a lock,
// and what a heap knows about its blocks lies in ordinary memory: beside the budget, about 0.6 % of
// what was allocated. Space in the store is promised when memory is allocated: a full disk is an
// error of the allocation, not of a touch (stores that cannot promise: docs/reference/heap.md).
//
// A heap is volatile: when it ends, all its memory is gone, blocks that are still allocated, too;
// their destructors are not called. In a forked child a parent's heap allocates nothing (EPERM),
// free() does nothing, and a touch of its memory ends the child, as with regions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "outcore/options.h"
#include "outcore/result.h"
#include "outcore/runtime.h"
#include "outcore/store.h"

namespace outcore {

struct HeapOptions {
  // Where the bytes rest: a URI (docs/reference/stores.md). Empty: scratch:, in the runtime's
  // scratch_dir. One heap a store; what it held is lost.
  std::string store{};
  std::shared_ptr<Store> store_object{};  // instead of a URI
  bool may_overwrite = false;             // `store` may name something that holds bytes
  uint64_t reserve_bytes = 0;  // addresses, and so the most that can be allocated. 0: 1 TiB, or
                               // as much as this process can have
  uint64_t page_bytes = 0;     // unit of fault, eviction and I/O. 0: the runtime's
  Advice advice = Advice::kNormal;
  // Not set: the runtime's, and where that is auto, messages, so that system calls may use memory
  // of the heap; where those are not to be had, as for any region.
  std::optional<Delivery> delivery{};
  // Free memory that is kept as it is, to be used again; more goes back to the store. 0: an eighth
  // of the budget, at most 1 GiB.
  uint64_t kept_bytes_max = 0;
  std::string name{};  // for messages; empty: the store's URI
};

// Values of now.
struct HeapMetrics {
  uint64_t allocated_bytes = 0;  // usable bytes of all blocks
  uint64_t allocated_blocks = 0;
  uint64_t reserved_bytes = 0;  // that the store has space for
  uint64_t kept_bytes = 0;      // of these: free
  uint64_t address_bytes = 0;   // addresses that were used so far
  uint64_t resident_bytes = 0;  // in memory
  uint64_t metadata_bytes = 0;  // of the heap, in ordinary memory; maps of addresses not included
};

class Heap {
 public:
  struct Impl;  // of the library

  // Errors: those of opening the store; EEXIST (it holds something); EINVAL (options); ENOMEM,
  // ENOSPC, and those of Runtime::map. The runtime must outlive the heap.
  static Result<Heap> create(Runtime& runtime, const HeapOptions& options = {});
  // The same allocator in ordinary memory, for comparison. Of the options only reserve_bytes,
  // kept_bytes_max and name are looked at.
  static Result<Heap> in_memory(const HeapOptions& options = {});

  Heap(Heap&&) noexcept;  // blocks, allocators and resources stay as they are
  Heap& operator=(Heap&&) noexcept;
  ~Heap();

  // `bytes` bytes at a multiple of `alignment`; 0 bytes are as 1. nullptr: errno is ENOMEM (no
  // addresses left, or no ordinary memory), ENOSPC (the store is full), EINVAL (the alignment is no
  // power of two), EPERM (a forked child), or what the store said. What the memory holds is
  // unspecified.
  void* allocate(size_t bytes, size_t alignment = alignof(std::max_align_t));
  // The same, and it reads zero; fresh pages of it are filled without I/O.
  void* allocate_zeroed(size_t bytes, size_t alignment = alignof(std::max_align_t));
  // In place where there is room, else elsewhere; what both sizes have stays. nullptr: as
  // allocate(), and the old block is as it was. A nullptr is allocated.
  void* reallocate(void* block, size_t bytes, size_t alignment = alignof(std::max_align_t));
  // REQUIRES: `block` is a block of this heap, or nullptr. Anything else, and a block that is free
  // already, stops the program where it is noticed.
  void free(void* block);
  // The same as allocate(), with the reason in words.
  Result<void*> try_allocate(size_t bytes, size_t alignment = alignof(std::max_align_t));
  // Why an allocation of so many bytes failed with this errno.
  Error error_of(int code, size_t bytes) const;

  size_t usable_bytes(const void* block) const;  // at least what was asked for. REQUIRES: as free()
  bool owns(const void* p) const;                // it is an address of this heap, in use or not

  // Gives free memory back to the store now; what other threads keep for themselves stays (at most
  // 64 KiB a size). The store's first error.
  Status trim();
  // For memory of this heap, as those of Region; nothing, and success, in ordinary memory.
  Status pin(const void* p, size_t size_bytes);
  Status unpin(const void* p, size_t size_bytes);
  Status prefetch(const void* p, size_t size_bytes);

  HeapMetrics metrics() const;
  const std::string& name() const;
  // Never kAuto; nothing in ordinary memory. In-thread, system calls on memory that is not resident
  // fail with EFAULT: pin it.
  std::optional<Delivery> delivery() const;
  uint64_t page_bytes() const;

  // A T in the heap. Empty: there is no memory (errno). What its constructor throws is passed on.
  template <typename T, typename... Args>
  auto make_unique(Args&&... args);

 private:
  template <typename T>
  friend class Allocator;
  template <typename T>
  friend struct HeapDelete;
  friend class HeapResource;
  explicit Heap(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

namespace heap_calls {  // of a heap that may have been moved
void* allocate(Heap::Impl* impl, size_t bytes, size_t alignment);
void free(Heap::Impl* impl, void* block);
[[noreturn]] void out_of_memory();  // std::bad_alloc
}  // namespace heap_calls

// Allocator<T>: for every container of the standard library. Two are equal if they are of the same
// heap. A container stays in the heap that it was made with: assignment copies or moves elements,
// and only swap() exchanges heaps, with their contents. A copy of a container is made in the same
// heap. The heap must outlive all of its containers. Memory that is short: std::bad_alloc.
template <typename T>
class Allocator {
 public:
  using value_type = T;
  using propagate_on_container_copy_assignment = std::false_type;
  using propagate_on_container_move_assignment = std::false_type;
  using propagate_on_container_swap = std::true_type;
  using is_always_equal = std::false_type;

  Allocator(Heap& heap) : impl_(heap.impl_.get()) {}  // NOLINT(google-explicit-constructor)
  template <typename U>
  Allocator(const Allocator<U>& other) : impl_(other.impl_) {}  // NOLINT(google-explicit-*)

  [[nodiscard]] T* allocate(size_t count) {
    void* const p = count > SIZE_MAX / sizeof(T)
                        ? nullptr
                        : heap_calls::allocate(impl_, count * sizeof(T), alignof(T));
    if (p == nullptr) heap_calls::out_of_memory();
    return static_cast<T*>(p);
  }
  void deallocate(T* p, size_t) noexcept { heap_calls::free(impl_, p); }

  template <typename U>
  bool operator==(const Allocator<U>& other) const {
    return impl_ == other.impl_;
  }

 private:
  template <typename U>
  friend class Allocator;
  Heap::Impl* impl_;
};

// For std::pmr containers. The heap must outlive it, and it its containers.
class HeapResource : public std::pmr::memory_resource {
 public:
  explicit HeapResource(Heap& heap) : impl_(heap.impl_.get()) {}

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* p, size_t bytes, size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override;
  Heap::Impl* impl_;
};

// What a std::unique_ptr of make_unique() ends its T with.
template <typename T>
struct HeapDelete {
  HeapDelete() = default;
  explicit HeapDelete(Heap& heap) : impl_(heap.impl_.get()) {}
  void operator()(T* p) const {
    p->~T();
    heap_calls::free(impl_, p);
  }

 private:
  Heap::Impl* impl_ = nullptr;
};
template <typename T>
using HeapPointer = std::unique_ptr<T, HeapDelete<T>>;

template <typename T, typename... Args>
auto Heap::make_unique(Args&&... args) {
  struct Raw {  // frees if the constructor throws
    Heap& heap;
    void* p;
    ~Raw() { heap.free(p); }
  } raw{*this, allocate(sizeof(T), alignof(T))};
  if (raw.p == nullptr) return HeapPointer<T>();
  T* const made = ::new (raw.p) T(std::forward<Args>(args)...);
  raw.p = nullptr;
  return HeapPointer<T>(made, HeapDelete<T>(*this));
}

}  // namespace outcore
