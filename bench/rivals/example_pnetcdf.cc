// The example of the pMAP paper: each process stores 500 doubles of one array. PnetCDF.
#include <mpi.h>
#include <pnetcdf.h>

#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, file, dim, id;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector data(500, 1.0 + rank);
  MPI_Offset count = 500;
  MPI_Offset offset = count * rank;
  ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file);
  ncmpi_def_dim(file, "n", count * size, &dim);
  ncmpi_def_var(file, "A", NC_DOUBLE, 1, &dim, &id);
  ncmpi_enddef(file);
  ncmpi_put_vara_double_all(file, id, &offset, &count, data.data());
  ncmpi_close(file);
  MPI_Finalize();
  return 0;
}
