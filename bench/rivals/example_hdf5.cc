// The example of the pMAP paper: each process stores 500 doubles of one array. HDF5.
#include <hdf5.h>
#include <mpi.h>

#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector data(500, 1.0 + rank);
  hsize_t count = 500;
  hsize_t offset = count * rank;
  hsize_t dims = count * size;
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
  hid_t space = H5Screate_simple(1, &dims, NULL);
  hid_t set = H5Dcreate(file, "A", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  hid_t memory = H5Screate_simple(1, &count, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &offset, NULL, &count, NULL);
  hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
  H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, transfer, data.data());
  H5Pclose(transfer);
  H5Sclose(memory);
  H5Dclose(set);
  H5Sclose(space);
  H5Fclose(file);
  H5Pclose(access);
  MPI_Finalize();
  return 0;
}
