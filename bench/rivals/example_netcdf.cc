// The example of the pMAP paper: each process stores 500 doubles of one array. NetCDF-4.
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>

#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, file, dim, id;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector data(500, 1.0 + rank);
  size_t count = 500;
  size_t offset = count * rank;
  nc_create_par(argv[1], NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file);
  nc_def_dim(file, "n", count * size, &dim);
  nc_def_var(file, "A", NC_DOUBLE, 1, &dim, &id);
  nc_enddef(file);
  nc_var_par_access(file, id, NC_COLLECTIVE);
  nc_put_vara_double(file, id, &offset, &count, data.data());
  nc_close(file);
  MPI_Finalize();
  return 0;
}
