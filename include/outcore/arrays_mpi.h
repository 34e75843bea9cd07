// ArraysMpi: lets the processes of an MPI communicator open an outcore::Arrays together.
// Header-only; uses your mpi.h.
//
//   auto out = outcore::Arrays::open("run.oca", mode, outcore::mpi(MPI_COMM_WORLD)).value();
#pragma once

#include <mpi.h>

#include "outcore/arrays.h"

namespace outcore {

// REQUIRES: MPI is initialised, and stays so until the container is closed; all processes of the
// communicator call open() and close(), each in one thread.
inline Communicator mpi(MPI_Comm communicator) {
  int rank = 0, size = 1;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  const auto any = [communicator](bool has_failed) {
    int mine = has_failed ? 1 : 0, all = 0;
    const int result = MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, communicator);
    return result != MPI_SUCCESS || all != 0;
  };
  return {static_cast<unsigned>(rank), static_cast<unsigned>(size), any};
}

}  // namespace outcore
