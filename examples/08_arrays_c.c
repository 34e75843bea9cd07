// Named arrays in C: four processes store a part each, and whoever reads takes any other.
//
//   example_arrays_c FILE
#include <outcore/arrays_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kProcesses = 4, kRows = 250, kColumns = 1000 };

static int fail(const char* what) {
  fprintf(stderr, "arrays: %s: %s\n", what, oc_last_error());
  return 1;
}

static int write_rows(const char* path, uint32_t rank) {
  static double mine[kRows][kColumns];
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) mine[i][j] = rank * kRows + i + j / 1000.0;

  oc_communicator all = oc_processes(kProcesses);
  oc_arrays* out;
  if (oc_arrays_open(path, OC_ARRAYS_WRITE, &all, NULL, &out) != 0) return fail("open");
  const uint64_t shape[] = {kProcesses * kRows, kColumns};
  const uint64_t at[] = {rank * kRows, 0}, box[] = {kRows, kColumns};
  int result = oc_arrays_alloc(out, "u", OC_TYPE_DOUBLE, 2, shape, NULL);  // each process the same
  if (result == 0) result = oc_arrays_store(out, "u", OC_TYPE_DOUBLE, mine, 2, at, box);
  if (result != 0) fail("store");
  if (oc_arrays_close(out) != 0) return fail("close");  // durable, whole, and visible
  return result != 0;
}

static int read_column(const char* path) {
  oc_arrays* in;
  if (oc_arrays_open(path, OC_ARRAYS_READ, NULL, NULL, &in) != 0) return fail("open");
  double column[kProcesses * kRows];
  const uint64_t from[] = {0, 7}, plane[] = {kProcesses * kRows, 1};
  int result = oc_arrays_load(in, "u", OC_TYPE_DOUBLE, column, 2, from, plane);  // any box

  const oc_array_view* u = NULL;  // or as memory: pages come when they are touched
  if (result == 0) result = oc_arrays_view(in, "u", OC_TYPE_DOUBLE, 0, NULL, NULL, &u);
  if (result == 0) {
    const double* data = u->data;
    printf("u(500, 7) = %g, and %g\n", column[500], data[500 * u->strides[0] + 7 * u->strides[1]]);
  } else {
    fail("read");
  }
  oc_array_view_free(u);
  if (oc_arrays_close(in) != 0) return fail("close");
  return result != 0;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: example_arrays_c FILE\n");
    return 2;
  }
  pid_t children[kProcesses];
  for (uint32_t rank = 0; rank < kProcesses; ++rank) {
    children[rank] = fork();
    if (children[rank] == 0) _exit(write_rows(argv[1], rank));
  }
  int failed = 0;
  for (int rank = 0; rank < kProcesses; ++rank) {
    int status = 1;
    waitpid(children[rank], &status, 0);
    if (status != 0) failed = 1;
  }
  return failed != 0 ? 1 : read_column(argv[1]);
}
