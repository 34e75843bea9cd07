// The example of the pMAP paper: each process stores 500 doubles of one array. Outcore.
#include "outcore/arrays_mpi.h"

using namespace outcore;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  auto all = mpi(MPI_COMM_WORLD);
  std::vector data(500, 1.0 + all.rank);
  auto out = Arrays::open(argv[1], ArraysMode::kWrite, all);
  bool is_stored = out->alloc<double>("A", {500 * all.size}) &&
                   out->store("A", data.data(), {500 * all.rank}, {500}) && out->close();
  MPI_Finalize();
  return !is_stored;
}
