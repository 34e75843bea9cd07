// Check: macros and helpers of the C tests. A failed check prints where, what, and the library's
// last error, and ends the program with status 1.
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outcore/outcore.h"

#define CHECK(condition)                                                                      \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
              oc_last_error());                                                               \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)

// Checks that the call returns `wanted`: 0, or -errno.
#define CHECK_IS(wanted, call)                                                                 \
  do {                                                                                         \
    const int check_result = (call);                                                           \
    if (check_result != (wanted)) {                                                            \
      fprintf(stderr, "%s:%d: %s is %d, not %d (last error: %s)\n", __FILE__, __LINE__, #call, \
              check_result, (int)(wanted), oc_last_error());                                   \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

#define CHECK_OK(call) CHECK_IS(0, call)
// Checks that the last error contains this text.
#define CHECK_SAYS(text) CHECK(strstr(oc_last_error(), text) != NULL)

// Starts a runtime with this budget that ignores the environment.
static inline oc_runtime* start(uint64_t budget_bytes) {
  oc_options options;
  oc_runtime* runtime = NULL;
  oc_options_init(&options);
  options.budget_bytes = budget_bytes;
  CHECK_OK(oc_start(&options, &runtime));
  CHECK(runtime != NULL);
  return runtime;
}

static inline oc_map_options map_options(uint32_t access, uint64_t size_bytes) {
  oc_map_options options;
  oc_map_options_init(&options);
  options.access = access;
  options.size_bytes = size_bytes;
  return options;
}

// A deterministic word for each position.
static inline uint64_t word_of(uint64_t i) { return (i + 1) * 0x9e3779b97f4a7c15u; }
