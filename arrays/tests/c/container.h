// Container: one of arrays for a test, in a folder of its own; include it after folder.h.
#pragma once

#include "outcore/arrays_c.h"

static char container_path[600];

static inline const char* make_container_path(void) {
  snprintf(container_path, sizeof container_path, "%s/a.oca", make_folder());
  return container_path;
}

static inline oc_arrays* open_container(uint32_t mode) {
  oc_arrays* arrays = NULL;
  CHECK_OK(oc_arrays_open(container_path, mode, NULL, NULL, &arrays));
  CHECK(arrays != NULL);
  return arrays;
}

static inline oc_array_info info_of(const oc_arrays* arrays, const char* name) {
  oc_array_info info;
  oc_array_info_init(&info);
  CHECK_OK(oc_arrays_info(arrays, name, &info));
  return info;
}

static inline double value_at(uint64_t i, uint64_t j) { return (double)(i * 1000 + j); }
