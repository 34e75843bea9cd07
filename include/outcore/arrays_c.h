// Arrays in C: named N-dimensional arrays in one container, as outcore/arrays.h has them in C++;
// docs/guides/arrays.md tells about both. C99 and later; C++ may include it too.
//
//   oc_communicator all = oc_processes(4);
//   oc_arrays* out;
//   oc_arrays_open("run.oca", OC_ARRAYS_WRITE, &all, NULL, &out);
//   const uint64_t shape[] = {1000, 1000}, at[] = {250 * rank, 0}, box[] = {250, 1000};
//   oc_arrays_alloc(out, "u", OC_TYPE_DOUBLE, 2, shape, NULL);    // each process: the same
//   oc_arrays_store(out, "u", OC_TYPE_DOUBLE, mine, 2, at, box);  // each process: its box
//   if (oc_arrays_close(out) != 0) puts(oc_last_error());         // durable, whole, and visible
//
// Outcome, ownership, structs, texts and forks are as outcore/outcore.h says. Shapes, offsets and
// boxes count elements, `dim_count` of them, the first dimension first; 0 dimensions are one value.
// Data in memory are dense boxes, last dimension fastest, or first with OC_ORDER_COLUMN. Nothing is
// written by a call that is refused.
//
// Any thread may call anything but oc_arrays_close and oc_arrays_abort. A handle that is closed:
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

typedef struct oc_arrays oc_arrays;  // a container that is open; oc_arrays_close, oc_arrays_abort
typedef struct oc_names oc_names;    // a list of names; oc_names_free

enum { OC_DIMS_MAX = 32 };

enum {                   // mode
  OC_ARRAYS_READ = 0,    // what is in it
  OC_ARRAYS_WRITE = 1,   // new; what is there is replaced, if it is a container
  OC_ARRAYS_UPDATE = 2,  // more arrays; made if there is none
};
enum {                  // order
  OC_ORDER_ROW = 0,     // the last dimension fastest, as C and NumPy have it
  OC_ORDER_COLUMN = 1,  // the first, as Fortran and Matlab
};

// -- Types: what an element is, in NumPy's words --

#define OC_TYPE_BOOL "|b1"
#define OC_TYPE_INT8 "|i1"
#define OC_TYPE_INT16 "<i2"
#define OC_TYPE_INT32 "<i4"
#define OC_TYPE_INT64 "<i8"
#define OC_TYPE_UINT8 "|u1"
#define OC_TYPE_UINT16 "<u2"
#define OC_TYPE_UINT32 "<u4"
#define OC_TYPE_UINT64 "<u8"
#define OC_TYPE_HALF "<f2"  // two bytes, that no type of C has
#define OC_TYPE_FLOAT "<f4"
#define OC_TYPE_DOUBLE "<f8"
#define OC_TYPE_LONG_DOUBLE "<f16"
#define OC_TYPE_FLOAT_COMPLEX "<c8"
#define OC_TYPE_DOUBLE_COMPLEX "<c16"
#define OC_TYPE_LONG_DOUBLE_COMPLEX "<c32"
#define OC_TYPE_TEXT "text"  // bytes of one text, in one dimension

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
  char text[32];  // what the functions take
} oc_type_name;

// A struct, as its bytes: oc_struct_type(sizeof(struct particle)).text is "V24".
static inline oc_type_name oc_struct_type(size_t size_bytes) {
  oc_type_name name;
  snprintf(name.text, sizeof name.text, "V%zu", size_bytes);
  return name;
}
// Fixed texts of so many bytes, zeros behind: "S12".
static inline oc_type_name oc_fixed_text_type(size_t size_bytes) {
  oc_type_name name;
  snprintf(name.text, sizeof name.text, "S%zu", size_bytes);
  return name;
}

// -- Open and close --

// Who opens a container together. All of them open, allocate and close; arrays are finished, and
// visible to others, when the last has closed.
typedef struct oc_communicator {
  size_t struct_bytes;  // set by oc_communicator_init
  uint32_t rank, size;  // size processes, of which this is one: rank < size
  // All have come here: 1 if has_failed is 1 in one of them, else 0. NULL: processes that do not
  // wait for each other.
  int (*any)(void* context, int has_failed);
  void* context;
} oc_communicator;

static inline void oc_communicator_init(oc_communicator* together) {  // this process alone
  memset(together, 0, sizeof *together);
  together->struct_bytes = sizeof *together;
  together->size = 1;
}
// So many processes of this machine, without MPI. For MPI: outcore/arrays_mpi_c.h.
static inline oc_communicator oc_processes(uint32_t count) {
  oc_communicator together;
  oc_communicator_init(&together);
  together.size = count;
  return together;
}

typedef struct oc_arrays_options {
  size_t struct_bytes;  // set by oc_arrays_options_init
  // For views and stores that are no files; NULL: one of its own. It cannot be stopped while the
  // container is open, or a view of it there.
  oc_runtime* runtime;
} oc_arrays_options;

static inline void oc_arrays_options_init(oc_arrays_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_bytes = sizeof *options;
}

// A path or URI. `together` and options may be NULL: one process, a runtime of its own. Errors:
// -ENOENT; -EINVAL (no container, a newer format); -EBUSY (others write it); -EIO (damaged);
// -ENOTSUP (several processes on a store that takes one writer); -ETIMEDOUT (not all processes have
// opened it within a minute).
int oc_arrays_open(const char* uri, uint32_t mode, const oc_communicator* together,
                   const oc_arrays_options* options, oc_arrays** arrays);
// Reads all finished arrays, or the one that is named, and compares them with their checksums.
// -EIO: bytes are not what was stored; the text names the first place, and *damages, unless it is
// NULL, becomes their number (0 else). Arrays without checksums are passed over. name: NULL or ""
// for all.
int oc_arrays_verify(const oc_arrays* arrays, const char* name, uint64_t* damages);
// What this process has stored is durable. Of one process alone: and finished.
int oc_arrays_flush(oc_arrays* arrays);
// The same, and of several: together. The first error there was: then what was being written is
// absent. The container is closed in either case; views of it stay.
int oc_arrays_close(oc_arrays* arrays);

// In place of a close, by any one of those who write: what was being written is absent, as if this
// process had died, and the others' oc_arrays_close returns an error. What was flushed, removed,
// renamed or changed in place stays so. With `any` it waits for the others to close or abort. The
// container is closed.
int oc_arrays_abort(oc_arrays* arrays);

const char* oc_arrays_uri(const oc_arrays* arrays);  // "" if it is closed
// How its bytes travel, for people. A text: see outcore.h.
int oc_arrays_describe(const oc_arrays* arrays, char* buffer, size_t size_bytes,
                       size_t* needed_bytes);

// -- Store --

typedef struct oc_array_options {
  size_t struct_bytes;  // set by oc_array_options_init
  // The shape of the pieces in which it is kept, for boxes that are no rows; as many as dims.
  // NULL: one piece.
  const uint64_t* tiles;
  uint32_t order;  // OC_ORDER_ROW …
  // 1, of oc_arrays_alloc: it takes the place of a finished array of its name when it is finished
  // itself. Else 0.
  uint32_t may_replace;
  // "lz4", "zstd" or "zstd:LEVEL" (1 … 19): each tile by itself, in tiles of about 1 MiB if none
  // are given (tiles below 512 bytes stay as they are). NULL or "": as they are. Such an array is
  // loaded, not viewed; when it is finished it is replaced, not changed.
  const char* compress;
} oc_array_options;

static inline void oc_array_options_init(oc_array_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_bytes = sizeof *options;
}

// Room for an array; what is not stored reads zero. All processes do it, with the same words.
// Options may be NULL. Errors: -EEXIST (finished, or of another shape), -EINVAL (the type; dims:
// overflow, and what would do; compress), -ENOSPC, -ENOSYS (the library that compresses is not
// here: its package), -EACCES (open for reading).
int oc_arrays_alloc(oc_arrays* arrays, const char* name, const char* type, uint32_t dim_count,
                    const uint64_t* dims, const oc_array_options* options);
// A box of it, from dense memory; exactly these bytes are written. Errors: -ENOENT (with the
// nearest name), -EINVAL (the type, a box outside of the shape), -ENOTSUP (it is compressed and
// finished: store it as a whole).
int oc_arrays_store(oc_arrays* arrays, const char* name, const char* type, const void* data,
                    uint32_t dim_count, const uint64_t* offsets, const uint64_t* dims);
// An array, or one value, at once: in place of what has the name. Options may be NULL.
int oc_arrays_store_whole(oc_arrays* arrays, const char* name, const char* type, const void* data,
                          uint32_t dim_count, const uint64_t* dims,
                          const oc_array_options* options);
int oc_arrays_store_text(oc_arrays* arrays, const char* name, const char* text);

// -- Load --

// A box, to dense memory. Errors: as oc_arrays_store, and what the disk said.
int oc_arrays_load(const oc_arrays* arrays, const char* name, const char* type, void* into,
                   uint32_t dim_count, const uint64_t* offsets, const uint64_t* dims);
// An array or one value at once. -EINVAL: it has not as many bytes, and how many it has.
int oc_arrays_load_whole(const oc_arrays* arrays, const char* name, const char* type, void* into,
                         uint64_t size_bytes);
// A text: see outcore.h. Its bytes may be any, zeros too.
int oc_arrays_load_text(const oc_arrays* arrays, const char* name, char* buffer, size_t size_bytes,
                        size_t* needed_bytes);

// An array, or a box of it, as memory that is read: its pages come when they are touched. Outlives
// the container. The element at (i, j) is the one at i * strides[0] + j * strides[1].
typedef struct oc_array_view {
  size_t struct_bytes;      // what the library has set
  const void* data;         // of the type that was asked for; of no element: NULL, or anything
  uint64_t count;           // of elements
  const uint64_t* dims;     // dim_count of them
  const uint64_t* strides;  // in elements
  uint32_t dim_count;
  uint32_t is_dense;  // 1: no element between its first and last is of another box
} oc_array_view;

// dim_count 0: all of it; offsets and dims may be NULL then. -ENOTSUP: it is tiled, or
// compressed, and has to be loaded.
int oc_arrays_view(const oc_arrays* arrays, const char* name, const char* type, uint32_t dim_count,
                   const uint64_t* offsets, const uint64_t* dims, const oc_array_view** view);
void oc_array_view_free(const oc_array_view* view);  // NULL is nothing

// -- Names --

typedef struct oc_array_info {
  size_t struct_bytes;    // set by oc_array_info_init
  uint64_t size_bytes;    // of its elements: what oc_arrays_load_whole fills
  uint64_t stored_bytes;  // that it takes up in the container; compressed: at most
  uint32_t element_bytes;
  uint32_t dim_count;  // 0: one value
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

// -ENOENT: there is none, and the nearest name.
int oc_arrays_info(const oc_arrays* arrays, const char* name, oc_array_info* info);
// 1, or 0; 0 also where arrays were drained to what cannot be opened now: oc_arrays_info() tells
// them apart (-ENOENT: it is nowhere; -ENOLINK and others: that is not known).
int oc_arrays_has(const oc_arrays* arrays, const char* name);
// Those that are finished, and what we write, in order.
int oc_arrays_list(const oc_arrays* arrays, oc_names** names);
size_t oc_names_count(const oc_names* names);
const char* oc_names_at(const oc_names* names, size_t index);  // NULL: it has not so many
void oc_names_free(oc_names* names);                           // NULL is nothing

int oc_arrays_rename(oc_arrays* arrays, const char* from,
                     const char* to);                       // -EEXIST: `to` is there
int oc_arrays_remove(oc_arrays* arrays, const char* name);  // its space is used again

// Short texts with an array, or with the container (name NULL or ""). A text of NULL or "": there
// is none.
int oc_arrays_set_attribute(oc_arrays* arrays, const char* name, const char* key, const char* text);
int oc_arrays_attribute(const oc_arrays* arrays, const char* name, const char* key, char* buffer,
                        size_t size_bytes, size_t* needed_bytes);
int oc_arrays_attributes(const oc_arrays* arrays, const char* name, oc_names** keys);

#ifdef __cplusplus
}
#endif

// NOLINTEND(modernize-*,readability-identifier-naming)
