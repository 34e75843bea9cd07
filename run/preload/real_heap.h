// RealHeap: the malloc family that the program would have without this library: that of another
// library that is preloaded or linked (jemalloc, mimalloc), or of the C library. It is not part of
// Real (real.h), because these functions are called before any other, and while the others are
// looked up.
#pragma once

#include <cstddef>

namespace outcore::preload {

// X(result, name, parameters)
#define OUTCORE_HEAP_CALLS(X)                      \
  X(void*, malloc, (size_t))                       \
  X(void*, calloc, (size_t, size_t))               \
  X(void*, realloc, (void*, size_t))               \
  X(void, free, (void*))                           \
  X(void*, aligned_alloc, (size_t, size_t))        \
  X(int, posix_memalign, (void**, size_t, size_t)) \
  X(void*, memalign, (size_t, size_t))             \
  X(void*, valloc, (size_t))                       \
  X(void*, pvalloc, (size_t))                      \
  X(size_t, malloc_usable_size, (void*))

struct RealHeap {
#define OUTCORE_MEMBER(result, name, parameters) result(*name) parameters;
  OUTCORE_HEAP_CALLS(OUTCORE_MEMBER)
#undef OUTCORE_MEMBER
};

// At first these are functions that look up the real ones and then replace themselves.
extern RealHeap real_heap;

}  // namespace outcore::preload
