// dlm: arrays that may be larger than memory, in C and C++ (docs/guides/static-arrays.md).
//
// Compiled by occ, which includes this header by itself, static data is declared as ever, with the
// word dlm in front: it is resident within the budget and else rests in a store.
//
//   dlm double a[N][N], x[N];               // also static, extern, a struct, inside a function
//   double* y = (double*)dlm_alloc(n);      // free with dlm_free
//
// Without occ this header gives arrays by DLM_ARRAY, and the program is linked with -loutcore. With
// -DDLM_LOCAL dlm means nothing, everything is ordinary memory, and Outcore is not needed.
//
// All of a program's dlm data shares one runtime and one store, which the environment describes:
// OUTCORE_STORE (a URI; else unnamed scratch space that is taken as it is written), OUTCORE_BUDGET,
// OUTCORE_PAGE and every other option. Threads: all functions may be called by any thread. fork: a
// child has none of it; a touch ends it with a message. The words dlm and dlm_alloc are those of
// the DLM paper (Midorikawa, Kurokawa, Himeno, Sato: DLM, CLUSTER 2008).
#pragma once

#ifndef __ASSEMBLER__

// NOLINTBEGIN(modernize-*,readability-identifier-naming): C, with names as in C

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// The least memory of dlm data that is taken for the call: 64-byte aligned, of unspecified contents
// as malloc's. NULL: errno is ENOMEM or what the store said, and oc_last_error() tells why.
void* oc_dlm_alloc(size_t size_bytes);
// REQUIRES: NULL, or from oc_dlm_alloc and not freed since. Its space goes back to the store.
void oc_dlm_free(void* memory);
// Zeroed memory for the life of the program; NULL as above. What DLM_ARRAY calls, before main.
void* oc_dlm_array(size_t size_bytes);

// For system calls in in-thread delivery, devices, and debuggers. Ranges inside dlm data. 0, or
// -errno with oc_last_error().
int oc_dlm_prefault(const void* memory, size_t size_bytes);  // brings it in; nothing keeps it
int oc_dlm_pin(const void* memory, size_t size_bytes);       // brings it in, until oc_dlm_unpin
int oc_dlm_unpin(const void* memory, size_t size_bytes);

// What occ links into a program calls these: the range becomes dlm data, which reads zero; and the
// program is at its end. 0, or -errno with oc_last_error().
int oc_dlm_begin(void* first, size_t size_bytes);
int oc_dlm_end(void);
// 1: a system call cannot touch the range, since it has dlm data and its delivery is not messages.
// May be called in a signal handler.
int oc_dlm_must_copy(const void* memory, size_t size_bytes);

#ifdef __cplusplus
}
#endif

#if defined(DLM_LOCAL)  // everything is ordinary memory

#define dlm
// No header of the system's but the one above: a program may choose first what they declare.
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

#endif

// -- DLM_ARRAY(double, a, [N][N]); -- at file scope, for any compiler. In a header for others:
// DLM_EXTERN_ARRAY with the same three. DLM_SIZEOF(a) is the array's size. Under occ and with
// DLM_LOCAL it is an array like any other; else, in C, a pointer to its rows (a[i][j] works, sizeof
// does not), and in C++ a reference. It is made before main, in C++ in the order of its file.

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
