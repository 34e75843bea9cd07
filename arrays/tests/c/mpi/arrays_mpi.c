// The processes of an MPI communicator store their boxes in C, and hear of one that cannot.
//
//   mpiexec -n 3 test_c_arrays_mpi FILE
#include "outcore/arrays_mpi_c.h"

#include "core/tests/c/check.h"

static void store_rows(const char* path, uint32_t rank, uint32_t count) {
  const oc_communicator all = oc_mpi(MPI_COMM_WORLD);
  CHECK(all.rank == rank && all.size == count);
  const uint64_t shape[] = {count, 1000}, at[] = {rank, 0}, box[] = {1, 1000};
  double row[1000];
  for (int j = 0; j < 1000; ++j) row[j] = rank * 1000 + j;
  oc_arrays* out;
  CHECK_OK(oc_arrays_open(path, OC_ARRAYS_WRITE, &all, NULL, &out));
  CHECK_OK(oc_arrays_alloc(out, "u", OC_TYPE_DOUBLE, 2, shape, NULL));
  CHECK_OK(oc_arrays_store(out, "u", OC_TYPE_DOUBLE, row, 2, at, box));
  CHECK_OK(oc_arrays_close(out));
}

// When close has returned in one process, all of it is there for each.
static void check_last_column(const char* path, uint32_t count) {
  double* column = malloc(count * sizeof *column);
  const uint64_t at[] = {0, 999}, box[] = {count, 1};
  oc_arrays* in;
  CHECK(column != NULL);
  CHECK_OK(oc_arrays_open(path, OC_ARRAYS_READ, NULL, NULL, &in));
  CHECK_OK(oc_arrays_load(in, "u", OC_TYPE_DOUBLE, column, 2, at, box));
  for (uint32_t i = 0; i < count; ++i) CHECK(column[i] == i * 1000 + 999);
  CHECK_OK(oc_arrays_close(in));
  free(column);
}

int main(int argc, char** argv) {
  CHECK(MPI_Init(&argc, &argv) == MPI_SUCCESS);
  CHECK(argc == 2);
  int rank = 0, count = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  CHECK(count > 1);
  store_rows(argv[1], (uint32_t)rank, (uint32_t)count);
  check_last_column(argv[1], (uint32_t)count);

  oc_arrays* lost;
  const oc_communicator all = oc_mpi(MPI_COMM_WORLD);
  const char* path = rank == 0 ? "no/such/folder/a.oca" : argv[1];
  CHECK_IS(rank == 0 ? -ENOENT : -EIO, oc_arrays_open(path, OC_ARRAYS_READ, &all, NULL, &lost));
  CHECK(lost == NULL);
  CHECK(MPI_Finalize() == MPI_SUCCESS);
  return 0;
}
