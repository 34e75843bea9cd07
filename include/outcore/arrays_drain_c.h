// ArraysDrain in C: finished arrays of one container travel to another, in the background, as
// outcore/arrays_drain.h has it in C++; docs/guides/arrays.md#drain tells about both. C99 and
// later; C++ may include it too.
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
// Outcome, ownership, structs, texts and forks are as outcore/outcore.h says. Any thread may call
// anything but oc_arrays_drain_free.
#pragma once

// NOLINTBEGIN(modernize-*,readability-identifier-naming): C, with names as in C

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "outcore/outcore.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct oc_arrays_drain oc_arrays_drain;  // one that was started; oc_arrays_drain_free

typedef struct oc_drain_options {
  size_t struct_bytes;       // set by oc_drain_options_init
  const char* const* names;  // name_count of them; NULL, and 0: all that are finished
  size_t name_count;
  uint64_t bytes_per_second;  // at most; 0: as fast as it goes
  // For stores that are no files; NULL: one of its own. It cannot be stopped before
  // oc_arrays_drain_free.
  oc_runtime* runtime;
  // 1: when all are there they are removed here, and their space is used again; who reads the
  // first container finds them all the same.
  uint32_t may_remove;
  uint32_t unused;  // 0
} oc_drain_options;

static inline void oc_drain_options_init(oc_drain_options* options) {
  memset(options, 0, sizeof *options);
  options->struct_bytes = sizeof *options;
}

typedef struct oc_drain_progress {
  size_t struct_bytes;           // set by oc_drain_progress_init
  uint64_t arrays, arrays_done;  // those that were there already are done
  uint64_t bytes, bytes_done;    // of elements
  uint32_t has_ended;            // 1: oc_arrays_drain_wait returns at once
  uint32_t unused;
  char array[256];  // that is on its way, or was the last; "": none yet
} oc_drain_progress;

static inline void oc_drain_progress_init(oc_drain_progress* progress) {
  memset(progress, 0, sizeof *progress);
  progress->struct_bytes = sizeof *progress;
}

// From a path or URI to another; options may be NULL. Both containers are opened at once: the first
// for reading (others may add arrays meanwhile; none may be changed in place, nor the container
// replaced), the other for adding, made if there is none, as one process. Errors: those of
// oc_arrays_open; -EINVAL (both are one); -ENOENT (a name, with the nearest).
int oc_arrays_drain_start(const char* from, const char* to, const oc_drain_options* options,
                          oc_arrays_drain** drain);

// Until all are there, or the first error, which ends it: -ECANCELED; -EIO (what was read again is
// not what was written); -EEXIST (there is another array of the name, of other content: remove
// it); -EBUSY (all are there, but somebody writes the first container, so nothing was removed:
// drain again); those of the stores. What had been finished stays. Called again it says the same.
int oc_arrays_drain_wait(oc_arrays_drain* drain);
// Whether it has ended within so many milliseconds: 1, or 0; -errno if the drain cannot be used.
int oc_arrays_drain_wait_for(const oc_arrays_drain* drain, uint64_t wait_ms_max);
int oc_arrays_drain_progress(const oc_arrays_drain* drain, oc_drain_progress* progress);
int oc_arrays_drain_cancel(oc_arrays_drain* drain);  // soon; what had been finished stays
// Cancels it, unless it has ended, and waits; that error is lost. NULL is nothing.
void oc_arrays_drain_free(oc_arrays_drain* drain);

#ifdef __cplusplus
}
#endif

// NOLINTEND(modernize-*,readability-identifier-naming)
