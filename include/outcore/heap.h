// Heap: allocations larger than memory. Like malloc, but the bytes live in a store, and the
// runtime's budget bounds how many of them are in memory.
//
//   auto heap = outcore::Heap::create(runtime).value();
//   std::vector<double, outcore::Allocator<double>> v(outcore::Allocator<double>{heap});
//   auto* words = static_cast<uint64_t*>(heap.allocate(100ull << 30));
//
// Several heaps, on different stores and runtimes, may live in one process. Any thread may call any
// function, except those that destroy or move the heap. No call touches the heap's memory while it
// holds a lock. The heap's own data lies in ordinary memory, outside the budget: about 0.6 % of
// what was allocated. Space in the store is reserved when memory is allocated, so a full disk is an
// error of the allocation, not of an access (for stores that cannot reserve see
// docs/reference/heap.md).
//
// A heap is volatile: when it is destroyed, all its memory is gone, including blocks that are still
// allocated; destructors of objects in them are not called. In a forked child, a heap of the parent
// allocates nothing (EPERM), free() does nothing, and an access to its memory ends the child, as
// with regions.
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
  // The URI of the store (docs/reference/stores.md). Empty: scratch:, in the runtime's scratch_dir.
  // One heap per store; what the store held before is lost.
  std::string store{};
  std::shared_ptr<Store> store_object{};  // instead of a URI
  bool may_overwrite = false;             // allow a store that holds bytes already
  // Addresses to reserve, which bounds what can be allocated. 0: 1 TiB, or as much as this process
  // can have.
  uint64_t reserve_bytes = 0;
  uint64_t page_bytes = 0;  // unit of fault, eviction and I/O. 0: the runtime's
  Advice advice = Advice::kNormal;
  // Not set: the runtime's delivery. If that is auto: messages, so that system calls may use the
  // heap's memory; if messages are not available, as for any region.
  std::optional<Delivery> delivery{};
  // Limit of free memory that is kept for reuse; more is given back to the store. 0: an eighth of
  // the budget, at most 1 GiB.
  uint64_t kept_bytes_max = 0;
  std::string name{};  // for messages; empty: the store's URI
};

// Current values.
struct HeapMetrics {
  uint64_t allocated_bytes = 0;  // usable bytes of all blocks
  uint64_t allocated_blocks = 0;
  uint64_t reserved_bytes = 0;  // space reserved in the store
  uint64_t kept_bytes = 0;      // free part of reserved_bytes, kept for reuse
  uint64_t address_bytes = 0;   // addresses used so far
  uint64_t resident_bytes = 0;  // in memory
  // The heap's own data in ordinary memory, without the maps of addresses.
  uint64_t metadata_bytes = 0;
};

class Heap {
 public:
  struct Impl;  // of the library

  // Errors: those of opening the store; EEXIST (it holds bytes); EINVAL (options); ENOMEM, ENOSPC,
  // and those of Runtime::map. The runtime must outlive the heap.
  static Result<Heap> create(Runtime& runtime, const HeapOptions& options = {});
  // The same allocator in ordinary memory, for comparison. Uses only the options reserve_bytes,
  // kept_bytes_max and name.
  static Result<Heap> in_memory(const HeapOptions& options = {});

  Heap(Heap&&) noexcept;  // blocks, allocators and resources stay valid
  Heap& operator=(Heap&&) noexcept;
  ~Heap();

  // Allocates `bytes` bytes, aligned to `alignment`; 0 bytes count as 1. The contents are
  // unspecified. nullptr: errno is ENOMEM (no addresses or no ordinary memory left), ENOSPC (the
  // store is full), EINVAL (the alignment is not a power of two), EPERM (a forked child), or an
  // error of the store.
  void* allocate(size_t bytes, size_t alignment = alignof(std::max_align_t));
  // The same, but the memory reads zero; fresh pages are filled without I/O.
  void* allocate_zeroed(size_t bytes, size_t alignment = alignof(std::max_align_t));
  // Resizes the block in place if there is room, otherwise moves it. The contents are kept up to
  // the smaller size. nullptr: as allocate(), and the old block is unchanged. A nullptr block is
  // allocated.
  void* reallocate(void* block, size_t bytes, size_t alignment = alignof(std::max_align_t));
  // REQUIRES: `block` is a block of this heap, or nullptr. A wrong pointer or a block that is
  // already free stops the program where it is noticed.
  void free(void* block);
  // The same as allocate(), but returns an Error with a message.
  Result<void*> try_allocate(size_t bytes, size_t alignment = alignof(std::max_align_t));
  // The message for an allocation of `bytes` that failed with this errno.
  Error error_of(int code, size_t bytes) const;

  size_t usable_bytes(const void* block) const;  // at least what was asked for. REQUIRES: as free()
  bool owns(const void* p) const;  // true for every address of this heap, allocated or not

  // Gives free memory back to the store now, except what the caches of other threads hold (of each
  // block size at most 64 KiB, or 8 blocks). Returns the store's first error.
  Status trim();
  // As the functions of Region, for memory of this heap. For a heap in ordinary memory they succeed
  // and do nothing.
  Status pin(const void* p, size_t size_bytes);
  Status unpin(const void* p, size_t size_bytes);
  Status prefetch(const void* p, size_t size_bytes);

  HeapMetrics metrics() const;
  const std::string& name() const;
  // Never kAuto; nullopt for ordinary memory. With in-thread delivery, system calls on memory that
  // is not resident fail with EFAULT: pin it.
  std::optional<Delivery> delivery() const;
  uint64_t page_bytes() const;

  // Creates a T in the heap. Empty: no memory (errno). Passes on exceptions of the constructor.
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

namespace heap_calls {  // for callers that hold an Impl, since the Heap may have been moved
void* allocate(Heap::Impl* impl, size_t bytes, size_t alignment);
void free(Heap::Impl* impl, void* block);
[[noreturn]] void out_of_memory();  // std::bad_alloc
}  // namespace heap_calls

// Allocator<T>: for the containers of the standard library. Two allocators are equal if they belong
// to the same heap. A container stays in its heap: assignment copies or moves elements; only swap()
// exchanges heaps, with the contents. A copy of a container is in the same heap. The heap must
// outlive its containers. Throws std::bad_alloc if there is no memory.
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

// For std::pmr containers. The heap must outlive the resource, and the resource its containers.
class HeapResource : public std::pmr::memory_resource {
 public:
  explicit HeapResource(Heap& heap) : impl_(heap.impl_.get()) {}

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* p, size_t bytes, size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override;
  Heap::Impl* impl_;
};

// The deleter of the std::unique_ptr from make_unique().
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
