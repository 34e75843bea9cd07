// malloc and related functions, as the program calls them. For small sizes, and for all when
// --alloc is off, each is a comparison and a jump to the real one. They set errno as the real ones
// do.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "core/base/units.h"
#include "run/preload/bootstrap_memory.h"
#include "run/preload/calls.h"
#include "run/preload/heap.h"
#include "run/preload/own_heap.h"
#include "run/preload/real_heap.h"

using outcore::base::is_power_of_two;
using outcore::base::kSystemPage;
using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

// Code for large allocations is placed apart, so that it does not slow down the small ones.
#define OUTCORE_LARGE __attribute__((noinline, cold))
#define OUTCORE_CALLER __builtin_return_address(0)

OUTCORE_LARGE void* large_malloc(size_t bytes, size_t alignment, void* (*real_one)(size_t, size_t),
                                 const void* caller, bool is_zero = false) {
  if (is_inside() || is_code_of_another_heap(caller)) return real_one(alignment, bytes);
  bool is_available = true;
  void* p = or_no_memory(
      [&] { return Heap::instance().allocate(bytes, alignment, is_zero, &is_available); }, nullptr);
  return is_available ? p : real_one(alignment, bytes);
}

void* plain_malloc(size_t, size_t bytes) { return real_heap.malloc(bytes); }
void* plain_calloc(size_t, size_t bytes) { return real_heap.calloc(1, bytes); }
void* plain_memalign(size_t alignment, size_t bytes) {
  return real_heap.memalign(alignment, bytes);
}
void* plain_aligned_alloc(size_t alignment, size_t bytes) {
  return real_heap.aligned_alloc(alignment, bytes);
}
void* plain_posix_memalign(size_t alignment, size_t bytes) {
  void* p = nullptr;
  return real_heap.posix_memalign(&p, alignment, bytes) == 0 ? p : nullptr;
}

OUTCORE_LARGE void large_free(void* p) {
  const int saved_errno = errno;
  if (!BootstrapMemory::has(p)) Heap::instance().free(p);
  errno = saved_errno;
}

// Copies a block of another allocator to a new block: of the heap, if there is one.
void* carry(void* p, size_t old_bytes, size_t bytes) {
  void* to = large_malloc(bytes, 16, plain_malloc, nullptr);
  if (to == nullptr) return nullptr;
  std::memcpy(to, p, std::min(old_bytes, bytes));
  return to;
}

// realloc() of a block of the heap.
void* resize_or_move(void* p, size_t bytes) {
  Heap& heap = Heap::instance();
  if (bytes == 0) return large_free(p), nullptr;
  if (!Heap::wants(bytes)) {
    const size_t old_bytes = heap.usable_bytes(p);
    if (void* to = real_heap.malloc(bytes); to != nullptr) {
      std::memcpy(to, p, std::min(old_bytes, bytes));
      large_free(p);
      return to;
    }
  }
  const int saved_errno = errno;
  void* same = or_no_memory([&] { return heap.resize(p, bytes); }, nullptr);
  if (same != nullptr) return same;
  errno = saved_errno;
  return or_no_memory([&] { return heap.move(p, bytes); }, nullptr);
}

OUTCORE_LARGE void* large_realloc(void* p, size_t bytes, const void* caller) {
  if (BootstrapMemory::has(p)) {
    void* to = real_heap.malloc(bytes);
    if (to != nullptr) std::memcpy(to, p, std::min(bytes, BootstrapMemory::bytes_from(p)));
    return to;
  }
  if (p == nullptr) return large_malloc(bytes, 16, plain_malloc, caller);
  if (!Heap::has(p)) {
    if (is_inside() || is_code_of_another_heap(caller)) return real_heap.realloc(p, bytes);
    void* to = carry(p, real_heap.malloc_usable_size(p), bytes);
    if (to != nullptr) real_heap.free(p);
    return to;
  }
  return resize_or_move(p, bytes);
}

bool is_real(const void* p) { return !Heap::has(p) && !BootstrapMemory::has(p); }

}  // namespace

OUTCORE_EXPORT void* malloc(size_t bytes) noexcept {
  if (Heap::wants(bytes)) [[unlikely]]
    return large_malloc(bytes, 16, plain_malloc, OUTCORE_CALLER);
  return real_heap.malloc(bytes);
}

OUTCORE_EXPORT void free(void* p) noexcept {
  if (!is_real(p)) [[unlikely]]
    return large_free(p);
  real_heap.free(p);
}

OUTCORE_EXPORT void* calloc(size_t count, size_t bytes) noexcept {
  size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) return errno = ENOMEM, nullptr;
  if (Heap::wants(total)) [[unlikely]]
    return large_malloc(total, 16, plain_calloc, OUTCORE_CALLER, true);
  return real_heap.calloc(count, bytes);
}

OUTCORE_EXPORT void* realloc(void* p, size_t bytes) noexcept {
  if (!is_real(p) || Heap::wants(bytes)) [[unlikely]]
    return large_realloc(p, bytes, OUTCORE_CALLER);
  return real_heap.realloc(p, bytes);
}

OUTCORE_EXPORT void* reallocarray(void* p, size_t count, size_t bytes) noexcept {
  size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) return errno = ENOMEM, nullptr;
  return realloc(p, total);
}

OUTCORE_EXPORT void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  if (Heap::wants(bytes) && is_power_of_two(alignment)) [[unlikely]]
    return large_malloc(bytes, alignment, plain_aligned_alloc, OUTCORE_CALLER);
  return real_heap.aligned_alloc(alignment, bytes);
}

OUTCORE_EXPORT int posix_memalign(void** into, size_t alignment, size_t bytes) noexcept {
  if (Heap::wants(bytes) && is_power_of_two(alignment) && alignment >= sizeof(void*)) [[unlikely]] {
    const int saved_errno = errno;
    void* p = large_malloc(bytes, alignment, plain_posix_memalign, OUTCORE_CALLER);
    errno = saved_errno;
    if (p == nullptr) return ENOMEM;
    *into = p;
    return 0;
  }
  return real_heap.posix_memalign(into, alignment, bytes);
}

OUTCORE_EXPORT void* memalign(size_t alignment, size_t bytes) noexcept {
  constexpr size_t kAlignmentMost = size_t{1} << 46;
  if (Heap::wants(bytes) && alignment <= kAlignmentMost) [[unlikely]]
    return large_malloc(bytes, std::bit_ceil(std::max<size_t>(alignment, 16)), plain_memalign,
                        OUTCORE_CALLER);
  return real_heap.memalign(alignment, bytes);
}

OUTCORE_EXPORT void* valloc(size_t bytes) noexcept {
  if (Heap::wants(bytes)) [[unlikely]]
    return large_malloc(bytes, kSystemPage, plain_memalign, OUTCORE_CALLER);
  return real_heap.valloc(bytes);
}

OUTCORE_EXPORT void* pvalloc(size_t bytes) noexcept {
  if (Heap::wants(bytes)) [[unlikely]]
    return large_malloc(bytes, kSystemPage, plain_memalign, OUTCORE_CALLER);
  return real_heap.pvalloc(bytes);
}

OUTCORE_EXPORT size_t malloc_usable_size(void* p) noexcept {
  if (!is_real(p)) [[unlikely]]
    return Heap::has(p) ? Heap::instance().usable_bytes(p) : BootstrapMemory::bytes_from(p);
  return real_heap.malloc_usable_size(p);
}
