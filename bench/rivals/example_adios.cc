// The example of the pMAP paper: each process stores 500 doubles of one array. ADIOS 1.13.
#include <adios.h>

#include <string>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector data(500, 1.0 + rank);
  std::string offset = std::to_string(500 * rank);
  std::string dims = std::to_string(500 * size);
  int64_t group, file;
  uint64_t total;
  adios_init_noxml(MPI_COMM_WORLD);
  adios_declare_group(&group, "example", "", adios_stat_no);
  adios_select_method(group, "MPI", "", "");
  adios_define_var(group, "A", "", adios_double, "500", dims.c_str(), offset.c_str());
  adios_open(&file, "example", argv[1], "w", MPI_COMM_WORLD);
  adios_group_size(file, 500 * sizeof(double), &total);
  adios_write(file, "A", data.data());
  adios_close(file);
  adios_finalize(rank);
  MPI_Finalize();
  return 0;
}
