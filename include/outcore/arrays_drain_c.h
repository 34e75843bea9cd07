// ArraysDrain in C: copies finished arrays of one container to another in the background, as in
// outcore/arrays_drain.h for C++; docs/guides/arrays.md#drain describes both. C99 and later; C++
// may include it too.
//
//   oc_drain_options options;
//   oc_drain_options_init(&options);
//   options.may_remove = 1;
//   oc_arrays_drain* drain;
//   oc_arrays_drain_start("/pmem/run.oca", "/archive/run.oca", &options, &drain);
//   …                                                               // the program goes on
//   if (oc_arrays_drain_wait(drain) != 0) puts(oc_last_error());    // all there, durably, verified
//   oc_arrays_drain_free(drain);
//
// Outcome, ownership, structs, texts and fork: as in outcore/outcore.h. Any thread may call any
// function except oc_arrays_drain_free.
#pragma once

// NOLINTBEGIN(modernize-*,readability-identifier-naming): C, with names as in C

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "outcore/outcore.h"

#ifdef __cplusplus
extern "C" {
#endif

// A drain that was started; free with oc_arrays_drain_free.
typedef struct oc_arrays_drain oc_arrays_drain;

typedef struct oc_drain_options {
  size_t struct_bytes;       // set by oc_drain_options_init
  const char* const* names;  // name_count of them; NULL and 0: all finished arrays
  size_t name_count;
  uint64_t bytes_per_second;  // limit; 0: none
  // For stores that are not files; NULL: starts its own. The runtime cannot be stopped before
  // oc_arrays_drain_free.
  oc_runtime* runtime;
  // 1: remove the arrays from the first container when all are copied, and reuse their space.
  // Readers of the first container still find them.
  uint32_t may_remove;
  uint32_t unused;  // 0
} oc_drain_options;

static inline void oc_drain_options_init(oc_drain_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_bytes = sizeof *options;
}

typedef struct oc_drain_progress {
  size_t struct_bytes;           // set by oc_drain_progress_init
  uint64_t arrays, arrays_done;  // includes arrays that were there already
  uint64_t bytes, bytes_done;    // of elements
  uint32_t has_ended;            // 1: oc_arrays_drain_wait returns at once
  uint32_t unused;
  char array[256];  // being copied, or the last one; "": none yet
} oc_drain_progress;

static inline void oc_drain_progress_init(oc_drain_progress* progress) {
  memset(progress, 0, sizeof *progress);
  progress->struct_bytes = sizeof *progress;
}

// Starts to copy from one path or URI to another; options may be NULL. Opens both containers: the
// first for reading (other processes may add arrays meanwhile, but must not change arrays in place
// or replace the container), the second for adding, as one process; it is created if there is none.
// Errors: those of oc_arrays_open; -EINVAL (both are the same container); -ENOENT (no such array;
// the message names the nearest).
int oc_arrays_drain_start(const char* from, const char* to, const oc_drain_options* options,
                          oc_arrays_drain** drain);

// Waits until all arrays are copied, or until the first error, which ends the drain: -ECANCELED;
// -EIO (verification failed); -EEXIST (the other container has an array of that name with other
// content: remove it); -EBUSY (all are copied, but a process writes the first container, so nothing
// was removed: drain again); errors of the stores. Arrays that were finished before stay. Later
// calls return the same.
int oc_arrays_drain_wait(oc_arrays_drain* drain);
// Waits for the end for at most so many milliseconds: 1 if the drain has ended, otherwise 0; -errno
// if it cannot be used.
int oc_arrays_drain_wait_for(const oc_arrays_drain* drain, uint64_t wait_ms_max);
int oc_arrays_drain_progress(const oc_arrays_drain* drain, oc_drain_progress* progress);
int oc_arrays_drain_cancel(oc_arrays_drain* drain);  // ends it soon; finished arrays stay
// Cancels the drain unless it has ended, and waits; the error is lost. NULL is allowed.
void oc_arrays_drain_free(oc_arrays_drain* drain);

#ifdef __cplusplus
}
#endif

// NOLINTEND(modernize-*,readability-identifier-naming)
