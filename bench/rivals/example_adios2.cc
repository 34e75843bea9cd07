// The example of the pMAP paper: each process stores 500 doubles of one array. ADIOS2 of the wheel,
// which has no MPI: each process writes a file of its own.
#include <adios2.h>
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector data(500, 1.0 + rank);
  size_t count = 500;
  adios2::ADIOS adios;
  adios2::IO io = adios.DeclareIO("example");
  adios2::Engine engine = io.Open(argv[1] + std::to_string(rank), adios2::Mode::Write);
  auto a = io.DefineVariable<double>("A", {count * size}, {count * rank}, {count});
  engine.BeginStep();
  engine.Put(a, data.data());
  engine.EndStep();
  engine.Close();
  MPI_Finalize();
  return 0;
}
