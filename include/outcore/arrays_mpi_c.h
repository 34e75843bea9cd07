// ArraysMpi in C: lets the processes of an MPI communicator call oc_arrays_open together.
// Header-only; uses your mpi.h.
//
//   oc_communicator all = oc_mpi(MPI_COMM_WORLD);
//   oc_arrays_open("run.oca", OC_ARRAYS_WRITE, &all, NULL, &out);
#pragma once

// NOLINTBEGIN(modernize-*,readability-identifier-naming): C, with names as in C

#include <mpi.h>
#include <stdint.h>

#include "outcore/arrays_c.h"

// For oc_communicator.any. MPI_Comm is a number or a pointer, depending on the MPI; both fit in
// `context`.
static inline int oc_mpi_any(void* context, int has_failed) {
  int all = 0;
  const int result =
      MPI_Allreduce(&has_failed, &all, 1, MPI_INT, MPI_MAX, (MPI_Comm)(intptr_t)context);
  return result != MPI_SUCCESS || all != 0;
}

// REQUIRES: MPI is initialised, and stays so until the container is closed; all processes of the
// communicator call oc_arrays_open and oc_arrays_close, each in one thread.
static inline oc_communicator oc_mpi(MPI_Comm communicator) {
  int rank = 0, size = 1;
  oc_communicator together;
  oc_communicator_init(&together);
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  together.rank = (uint32_t)rank;
  together.size = (uint32_t)size;
  together.any = oc_mpi_any;
  together.context = (void*)(intptr_t)communicator;
  return together;
}

// NOLINTEND(modernize-*,readability-identifier-naming)
