// dlm: arrays that may be larger than memory, in C and C++ (docs/guides/static-arrays.md).
//
// occ is a compiler driver that includes this header automatically. With it, declare static data as
// usual, with the word dlm in front: the data is resident within the budget, and the rest is in a
// store.
//
//   dlm double a[N][N], x[N];               // also static, extern, a struct, inside a function
//   double* y = (double*)dlm_alloc(n);      // free with dlm_free
//
// Without occ, this header offers arrays by DLM_ARRAY; link the program with -loutcore. With
// -DDLM_LOCAL the word dlm means nothing: everything is ordinary memory, and Outcore is not needed.
//
// All dlm data of a program shares one runtime and one store, whose options come from the
// environment: OUTCORE_STORE (a URI; by default unnamed scratch space, allocated as it is written),
// OUTCORE_BUDGET, OUTCORE_PAGE and every other option. Any thread may call any function. A forked
// child has none of the data: an access ends the child with a message. The words dlm and dlm_alloc
// are those of the DLM paper (Midorikawa, Kurokawa, Himeno, Sato: DLM, CLUSTER 2008).
#pragma once

#ifndef __ASSEMBLER__

// NOLINTBEGIN(modernize-*,readability-identifier-naming): C, with names as in C

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Allocates dlm memory: 64-byte aligned, contents unspecified, as with malloc. NULL: errno is
// ENOMEM or an error of the store, and oc_last_error() has the message.
void* oc_dlm_alloc(size_t size_bytes);
// Frees it; its space goes back to the store. REQUIRES: NULL, or from oc_dlm_alloc and not yet
// freed.
void oc_dlm_free(void* memory);
// Zeroed memory for the life of the program; NULL as above. DLM_ARRAY calls it before main.
void* oc_dlm_array(size_t size_bytes);

// For system calls with in-thread delivery, devices and debuggers. Ranges must be inside dlm data.
// 0, or -errno with oc_last_error().
// brings it in; it may be evicted again
int oc_dlm_prefault(const void* memory, size_t size_bytes);
int oc_dlm_pin(const void* memory, size_t size_bytes);  // brings it in and keeps it until unpin
int oc_dlm_unpin(const void* memory, size_t size_bytes);

// Called by code that occ links into a program: begin makes the range dlm data, which reads zero;
// end is called when the program ends. 0, or -errno with oc_last_error().
int oc_dlm_begin(void* first, size_t size_bytes);
int oc_dlm_end(void);
// 1: a system call cannot use the range, because it contains dlm data whose delivery is not
// messages. May be called in a signal handler.
int oc_dlm_must_copy(const void* memory, size_t size_bytes);

#ifdef __cplusplus
}
#endif

#if defined(DLM_LOCAL)  // everything is ordinary memory

#define dlm
// Include no system header but the one above: the program may define macros that change them.
static inline void* dlm_alloc(size_t size_bytes) { return __builtin_calloc(1, size_bytes); }
static inline void dlm_free(void* memory) { __builtin_free(memory); }
static inline int dlm_prefault(const void* memory, size_t size_bytes) {
  (void)memory, (void)size_bytes;
  return 0;
}
static inline int dlm_pin(const void* memory, size_t size_bytes) {
  return dlm_prefault(memory, size_bytes);
}
static inline int dlm_unpin(const void* memory, size_t size_bytes) {
  return dlm_prefault(memory, size_bytes);
}

#else

static inline void* dlm_alloc(size_t size_bytes) { return oc_dlm_alloc(size_bytes); }
static inline void dlm_free(void* memory) { oc_dlm_free(memory); }
static inline int dlm_prefault(const void* memory, size_t size_bytes) {
  return oc_dlm_prefault(memory, size_bytes);
}
static inline int dlm_pin(const void* memory, size_t size_bytes) {
  return oc_dlm_pin(memory, size_bytes);
}
static inline int dlm_unpin(const void* memory, size_t size_bytes) {
  return oc_dlm_unpin(memory, size_bytes);
}

#if !defined(OUTCORE_OCC)
#define dlm _Pragma("GCC error \"dlm: compile with occ; with -DDLM_LOCAL it means nothing\"")
#elif !defined(__clang__)
#define dlm __attribute__((section(".lbss")))
#elif __clang_major__ >= 18
#define dlm __attribute__((section(".lbss.outcore_dlm")))
#else
#define dlm __attribute__((section(".bss.outcore_dlm")))
#endif

#if defined(OUTCORE_OCC)
// Of no size. Compilers let data that is const into a section only if all data in it is: beside
// this they report a dlm variable that is const, or a dlm function, also where it is the only one.
__extension__ static dlm __attribute__((used)) char oc_dlm_is_written[0];
#endif

#endif

// -- DLM_ARRAY(double, a, [N][N]); -- at file scope, for any compiler. In a header for other files:
// DLM_EXTERN_ARRAY with the same three arguments. DLM_SIZEOF(a) is the size of the array. Under occ
// and with DLM_LOCAL it is a normal array; otherwise it is, in C, a pointer to its rows (a[i][j]
// works, sizeof does not), and in C++ a reference. It is created before main, in C++ in the order
// of its file.

#if defined(OUTCORE_OCC) || defined(DLM_LOCAL)

#define DLM_ARRAY(type, name, shape) dlm type name shape
#define DLM_EXTERN_ARRAY(type, name, shape) extern dlm type name shape
#define DLM_SIZEOF(name) sizeof(name)

#else

#include <stdio.h>
#include <stdlib.h>

#include "outcore/outcore.h"

static inline void* dlm_array_or_end(size_t size_bytes, const char* name) {
  void* memory = oc_dlm_array(size_bytes);
  if (memory == NULL) {
    fprintf(stderr, "outcore: dlm array %s: %s\n", name, oc_last_error());
    _Exit(1);
  }
  return memory;
}

#define DLM_SIZEOF(name) sizeof(name##_dlm_shape)

#ifdef __cplusplus
#define DLM_ARRAY(type, name, shape)   \
  typedef type name##_dlm_shape shape; \
  extern name##_dlm_shape& name;       \
  name##_dlm_shape& name =             \
      *static_cast<name##_dlm_shape*>(dlm_array_or_end(sizeof(name##_dlm_shape), #name))
#define DLM_EXTERN_ARRAY(type, name, shape) \
  typedef type name##_dlm_shape shape;      \
  extern name##_dlm_shape& name
#else
#define DLM_EXTERN_ARRAY(type, name, shape) \
  typedef type name##_dlm_shape shape;      \
  extern __typeof__(&(*(name##_dlm_shape*)0)[0]) name
#define DLM_ARRAY(type, name, shape)                                            \
  typedef type name##_dlm_shape shape;                                          \
  __typeof__(&(*(name##_dlm_shape*)0)[0]) name;                                 \
  static void __attribute__((constructor(102))) name##_dlm_make(void) {         \
    name = (__typeof__(name))dlm_array_or_end(sizeof(name##_dlm_shape), #name); \
  }                                                                             \
  extern __typeof__(&(*(name##_dlm_shape*)0)[0]) name
#endif

#endif

// NOLINTEND(modernize-*,readability-identifier-naming)

#endif
