// Arrays in C: named N-dimensional arrays in one container, as in outcore/arrays.h for C++;
// docs/guides/arrays.md describes both. C99 and later; C++ may include it too.
//
//   oc_communicator all = oc_processes(4);
//   oc_arrays* out;
//   oc_arrays_open("run.oca", OC_ARRAYS_WRITE, &all, NULL, &out);
//   const uint64_t shape[] = {1000, 1000}, at[] = {250 * rank, 0}, box[] = {250, 1000};
//   oc_arrays_alloc(out, "u", OC_TYPE_DOUBLE, 2, shape, NULL);    // each process: the same
//   oc_arrays_store(out, "u", OC_TYPE_DOUBLE, mine, 2, at, box);  // each process: its box
//   if (oc_arrays_close(out) != 0) puts(oc_last_error());         // durable, whole, and visible
//
// Outcome, ownership, structs, texts and fork: as in outcore/outcore.h. Shapes, offsets and boxes
// count elements; they have `dim_count` numbers, the first dimension first; 0 dimensions are a
// single value. Data in memory are dense boxes, last dimension fastest, or first with
// OC_ORDER_COLUMN. A call that is refused writes nothing.
//
// Any thread may call any function except oc_arrays_close and oc_arrays_abort. A closed handle:
// -EBADF.
#pragma once

// NOLINTBEGIN(modernize-*,readability-identifier-naming): C, with names as in C

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "outcore/outcore.h"

#ifdef __cplusplus
extern "C" {
#endif

// An open container; free with oc_arrays_close or oc_arrays_abort.
typedef struct oc_arrays oc_arrays;
typedef struct oc_names oc_names;  // a list of names; free with oc_names_free

enum { OC_DIMS_MAX = 32 };

enum {                   // mode
  OC_ARRAYS_READ = 0,    // only reads
  OC_ARRAYS_WRITE = 1,   // a new container; replaces an existing one, but no other file
  OC_ARRAYS_UPDATE = 2,  // adds arrays; creates the container if there is none
};
enum {                  // order
  OC_ORDER_ROW = 0,     // last dimension fastest, as in C and NumPy
  OC_ORDER_COLUMN = 1,  // first dimension fastest, as in Fortran and Matlab
};

// -- Types of elements, written as in NumPy --

#define OC_TYPE_BOOL "|b1"
#define OC_TYPE_INT8 "|i1"
#define OC_TYPE_INT16 "<i2"
#define OC_TYPE_INT32 "<i4"
#define OC_TYPE_INT64 "<i8"
#define OC_TYPE_UINT8 "|u1"
#define OC_TYPE_UINT16 "<u2"
#define OC_TYPE_UINT32 "<u4"
#define OC_TYPE_UINT64 "<u8"
#define OC_TYPE_HALF "<f2"  // two bytes; C has no such type
#define OC_TYPE_FLOAT "<f4"
#define OC_TYPE_DOUBLE "<f8"
#define OC_TYPE_LONG_DOUBLE "<f16"
#define OC_TYPE_FLOAT_COMPLEX "<c8"
#define OC_TYPE_DOUBLE_COMPLEX "<c16"
#define OC_TYPE_LONG_DOUBLE_COMPLEX "<c32"
#define OC_TYPE_TEXT "text"  // the bytes of one text; one dimension

#define OC_TYPE_SHORT OC_TYPE_INT16
#define OC_TYPE_UNSIGNED_SHORT OC_TYPE_UINT16
#define OC_TYPE_INT OC_TYPE_INT32
#define OC_TYPE_UNSIGNED OC_TYPE_UINT32
#define OC_TYPE_LONG_LONG OC_TYPE_INT64
#define OC_TYPE_UNSIGNED_LONG_LONG OC_TYPE_UINT64
#if defined(__LP64__)
#define OC_TYPE_LONG OC_TYPE_INT64
#define OC_TYPE_UNSIGNED_LONG OC_TYPE_UINT64
#else
#define OC_TYPE_LONG OC_TYPE_INT32
#define OC_TYPE_UNSIGNED_LONG OC_TYPE_UINT32
#endif
#if defined(__CHAR_UNSIGNED__)
#define OC_TYPE_CHAR OC_TYPE_UINT8
#else
#define OC_TYPE_CHAR OC_TYPE_INT8
#endif

// The type of an element, from C11 on: OC_TYPE_OF(*mine), OC_TYPE_OF(u[0]).
#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
// clang-format off
#define OC_TYPE_OF(element)                                                         \
  _Generic((element),                                                               \
    _Bool: OC_TYPE_BOOL, char: OC_TYPE_CHAR,                                        \
    signed char: OC_TYPE_INT8, unsigned char: OC_TYPE_UINT8,                        \
    short: OC_TYPE_SHORT, unsigned short: OC_TYPE_UNSIGNED_SHORT,                   \
    int: OC_TYPE_INT, unsigned: OC_TYPE_UNSIGNED,                                   \
    long: OC_TYPE_LONG, unsigned long: OC_TYPE_UNSIGNED_LONG,                       \
    long long: OC_TYPE_LONG_LONG, unsigned long long: OC_TYPE_UNSIGNED_LONG_LONG,   \
    float: OC_TYPE_FLOAT, float _Complex: OC_TYPE_FLOAT_COMPLEX,                    \
    double: OC_TYPE_DOUBLE, double _Complex: OC_TYPE_DOUBLE_COMPLEX,                \
    long double: OC_TYPE_LONG_DOUBLE, long double _Complex: OC_TYPE_LONG_DOUBLE_COMPLEX)
// clang-format on
#endif

typedef struct oc_type_name {
  char text[32];  // to pass to functions
} oc_type_name;

// A struct, stored as its bytes: oc_struct_type(sizeof(struct particle)).text is "V24".
static inline oc_type_name oc_struct_type(size_t size_bytes) {
  oc_type_name name;
  snprintf(name.text, sizeof name.text, "V%zu", size_bytes);
  return name;
}
// Texts of a fixed number of bytes, padded with zeros: "S12".
static inline oc_type_name oc_fixed_text_type(size_t size_bytes) {
  oc_type_name name;
  snprintf(name.text, sizeof name.text, "S%zu", size_bytes);
  return name;
}

// -- Open and close --

// The processes that open a container together. All of them open it, allocate and close; the arrays
// are finished, and visible to others, when the last process has closed.
typedef struct oc_communicator {
  size_t struct_bytes;  // set by oc_communicator_init
  uint32_t rank, size;  // `size` processes; this one is number `rank` < size
  // Waits for all processes; returns 1 if has_failed is 1 in any of them, otherwise 0. NULL: the
  // processes do not wait for each other.
  int (*any)(void* context, int has_failed);
  void* context;
} oc_communicator;

static inline void oc_communicator_init(oc_communicator* together) {  // only this process
  memset(together, 0, sizeof *together);
  together->struct_bytes = sizeof *together;
  together->size = 1;
}
// `count` processes of this machine, without MPI. For MPI: outcore/arrays_mpi_c.h.
static inline oc_communicator oc_processes(uint32_t count) {
  oc_communicator together;
  oc_communicator_init(&together);
  together.size = count;
  return together;
}

typedef struct oc_arrays_options {
  size_t struct_bytes;  // set by oc_arrays_options_init
  // For views, and for stores that are not files; NULL: starts its own. The runtime cannot be
  // stopped while the container is open or a view of it exists.
  oc_runtime* runtime;
} oc_arrays_options;

static inline void oc_arrays_options_init(oc_arrays_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_bytes = sizeof *options;
}

// Opens a path or URI. `together` and options may be NULL: one process, and a runtime of its own.
// Errors: -ENOENT; -EINVAL (not a container, or a newer format); -EBUSY (other processes write it);
// -EIO (damaged); -ENOTSUP (several processes, on a store that has one writer); -ETIMEDOUT (not all
// processes have opened it within a minute).
int oc_arrays_open(const char* uri, uint32_t mode, const oc_communicator* together,
                   const oc_arrays_options* options, oc_arrays** arrays);
// Reads the array, or all finished arrays (name NULL or ""), and compares them with their
// checksums. -EIO: bytes differ from what was stored; the message names the first place. *damages,
// if not NULL, becomes the number of damages, otherwise 0. Arrays without checksums are skipped.
int oc_arrays_verify(const oc_arrays* arrays, const char* name, uint64_t* damages);
// Makes durable what this process has stored. If it is the only process: also finishes its arrays.
int oc_arrays_flush(oc_arrays* arrays);
// The same; several processes do it together. Returns the first error of the session; then what was
// being written is absent. The container is closed in any case; views of it stay.
int oc_arrays_close(oc_arrays* arrays);

// Instead of a close, by any of the writing processes: what was being written is absent, as if this
// process had died, and oc_arrays_close returns an error in the other processes. What was flushed,
// removed, renamed or changed in place stays so. With `any` it waits until the others close or
// abort. The container is closed.
int oc_arrays_abort(oc_arrays* arrays);

const char* oc_arrays_uri(const oc_arrays* arrays);  // "" if it is closed
// For people: how bytes are read and written. For the parameters of texts see outcore.h.
int oc_arrays_describe(const oc_arrays* arrays, char* buffer, size_t size_bytes,
                       size_t* needed_bytes);

// -- Store --

typedef struct oc_array_options {
  size_t struct_bytes;  // set by oc_array_options_init
  // The shape of the tiles in which the array is kept, if boxes are not whole rows; dim_count
  // numbers. NULL: not tiled.
  const uint64_t* tiles;
  uint32_t order;  // OC_ORDER_ROW …
  // For oc_arrays_alloc. 1: the new array replaces a finished one of the same name when it is
  // finished itself. 0: -EEXIST.
  uint32_t may_replace;
  // "lz4", "zstd" or "zstd:LEVEL" (1 … 19): each tile is compressed separately; without `tiles`, in
  // tiles of about 1 MiB. Tiles below 512 bytes stay uncompressed. NULL or "": not compressed. A
  // compressed array can be loaded, but not viewed; once it is finished it can be replaced, but not
  // changed.
  const char* compress;
} oc_array_options;

static inline void oc_array_options_init(oc_array_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_bytes = sizeof *options;
}

// Allocates an array; elements that are not stored read zero. All processes call it, with the same
// arguments. Options may be NULL. Errors: -EEXIST (it is finished, or has another shape), -EINVAL
// (the type; compress; dims overflow: the message says which values are valid), -ENOSPC, -ENOSYS
// (the compression library is not installed: the message names its package), -EACCES (open for
// reading).
int oc_arrays_alloc(oc_arrays* arrays, const char* name, const char* type, uint32_t dim_count,
                    const uint64_t* dims, const oc_array_options* options);
// Stores a box from dense memory; no other bytes of the array are written. Errors: -ENOENT (the
// message names the nearest array), -EINVAL (wrong type, or a box outside of the shape), -ENOTSUP
// (it is compressed and finished: store it as a whole).
int oc_arrays_store(oc_arrays* arrays, const char* name, const char* type, const void* data,
                    uint32_t dim_count, const uint64_t* offsets, const uint64_t* dims);
// Allocates and stores an array, or a single value; replaces an array of that name. Options may be
// NULL.
int oc_arrays_store_whole(oc_arrays* arrays, const char* name, const char* type, const void* data,
                          uint32_t dim_count, const uint64_t* dims,
                          const oc_array_options* options);
int oc_arrays_store_text(oc_arrays* arrays, const char* name, const char* text);

// -- Load --

// Loads a box into dense memory. Errors: as oc_arrays_store, and errors of the disk.
int oc_arrays_load(const oc_arrays* arrays, const char* name, const char* type, void* into,
                   uint32_t dim_count, const uint64_t* offsets, const uint64_t* dims);
// Loads an array or a single value. -EINVAL: it has another size; the message says which.
int oc_arrays_load_whole(const oc_arrays* arrays, const char* name, const char* type, void* into,
                         uint64_t size_bytes);
// Loads a text; for the parameters see outcore.h. It may contain any bytes, zeros too.
int oc_arrays_load_text(const oc_arrays* arrays, const char* name, char* buffer, size_t size_bytes,
                        size_t* needed_bytes);

// An array, or a box of it, as read-only memory; its pages are read when they are touched. It may
// outlive the container. Element (i, j) is the one at i * strides[0] + j * strides[1].
typedef struct oc_array_view {
  size_t struct_bytes;      // set by the library
  const void* data;         // of the type that was asked for; undefined if there are no elements
  uint64_t count;           // of elements
  const uint64_t* dims;     // dim_count of them
  const uint64_t* strides;  // in elements
  uint32_t dim_count;
  uint32_t is_dense;  // 1: all elements between the first and the last belong to the box
} oc_array_view;

// dim_count 0: the whole array; offsets and dims may then be NULL. -ENOTSUP: it is tiled or
// compressed, and must be loaded.
int oc_arrays_view(const oc_arrays* arrays, const char* name, const char* type, uint32_t dim_count,
                   const uint64_t* offsets, const uint64_t* dims, const oc_array_view** view);
void oc_array_view_free(const oc_array_view* view);  // NULL is allowed

// -- Names --

typedef struct oc_array_info {
  size_t struct_bytes;    // set by oc_array_info_init
  uint64_t size_bytes;    // of its elements: the bytes that oc_arrays_load_whole writes
  uint64_t stored_bytes;  // space in the container; if compressed, the most that it can take
  uint32_t element_bytes;
  uint32_t dim_count;  // 0: a single value
  uint32_t order;      // OC_ORDER_ROW …
  uint32_t is_tiled;
  uint64_t dims[OC_DIMS_MAX], tiles[OC_DIMS_MAX];
  char type[32], name[256];
  char compress[32];  // how its tiles are compressed: "zstd"; "": they are not
} oc_array_info;

static inline void oc_array_info_init(oc_array_info* info) {
  memset(info, 0, sizeof *info);
  info->struct_bytes = sizeof *info;
}

// -ENOENT: there is no such array; the message names the nearest.
int oc_arrays_info(const oc_arrays* arrays, const char* name, oc_array_info* info);
// 1 or 0. 0 also if the array may be in a container to which arrays were drained, and which cannot
// be opened now. oc_arrays_info() tells the cases apart (-ENOENT: there is no such array; -ENOLINK
// and others: not known).
int oc_arrays_has(const oc_arrays* arrays, const char* name);
// Finished arrays, and those that this process writes, by name.
int oc_arrays_list(const oc_arrays* arrays, oc_names** names);
size_t oc_names_count(const oc_names* names);
const char* oc_names_at(const oc_names* names, size_t index);  // NULL: index is too large
void oc_names_free(oc_names* names);                           // NULL is allowed

// -EEXIST: there is an array named `to`.
int oc_arrays_rename(oc_arrays* arrays, const char* from, const char* to);
int oc_arrays_remove(oc_arrays* arrays, const char* name);  // its space is reused

// Short texts kept with an array, or with the container (name NULL or ""). A text of NULL or ""
// removes the attribute.
int oc_arrays_set_attribute(oc_arrays* arrays, const char* name, const char* key, const char* text);
int oc_arrays_attribute(const oc_arrays* arrays, const char* name, const char* key, char* buffer,
                        size_t size_bytes, size_t* needed_bytes);
int oc_arrays_attributes(const oc_arrays* arrays, const char* name, oc_names** keys);

#ifdef __cplusplus
}
#endif

// NOLINTEND(modernize-*,readability-identifier-naming)
