// Arrays of several processes: each stores its box, with and without a function that gathers them;
// what one has not finished is absent. And of several threads.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "core/tests/c/check.h"
#include "core/tests/c/folder.h"
// After folder.h, which it needs.
#include "arrays/tests/c/container.h"

enum { kProcesses = 4, kRows = 30, kColumns = 77 };
static const uint64_t kShape[] = {kRows, kColumns};

typedef int (*Run)(uint32_t rank);

// 0 of those that returned 0, else what they returned, or 1000 and the signal.
static void in_processes(Run run, int* results) {
  pid_t children[kProcesses];
  for (uint32_t rank = 0; rank < kProcesses; ++rank) {
    children[rank] = fork();
    CHECK(children[rank] >= 0);
    if (children[rank] == 0) _exit(run(rank));
  }
  for (uint32_t rank = 0; rank < kProcesses; ++rank) {
    int status = 0;
    CHECK(waitpid(children[rank], &status, 0) == children[rank]);
    results[rank] = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
}

// Its columns, whose edges are inside of pages.
static int store_columns(oc_arrays* out, uint32_t rank, uint32_t count) {
  static double mine[kRows * kColumns];
  const uint64_t first = rank * kColumns / count, last = (rank + 1) * kColumns / count;
  const uint64_t at[] = {0, first}, box[] = {kRows, last - first};
  for (uint64_t i = 0; i < kRows; ++i)
    for (uint64_t j = first; j < last; ++j) mine[i * (last - first) + j - first] = value_at(i, j);
  const int result = oc_arrays_alloc(out, "u", OC_TYPE_DOUBLE, 2, kShape, NULL);
  return result != 0 ? result : oc_arrays_store(out, "u", OC_TYPE_DOUBLE, mine, 2, at, box);
}

static void check_u(void) {
  oc_arrays* in = open_container(OC_ARRAYS_READ);
  static double u[kRows][kColumns];
  memset(u, 0, sizeof u);
  CHECK_OK(oc_arrays_load_whole(in, "u", OC_TYPE_DOUBLE, u, sizeof u));
  for (uint64_t i = 0; i < kRows; ++i)
    for (uint64_t j = 0; j < kColumns; ++j) CHECK(u[i][j] == value_at(i, j));
  CHECK_OK(oc_arrays_close(in));
}

static int store_by(const oc_communicator* together, uint32_t rank) {
  oc_arrays* out;
  if (oc_arrays_open(container_path, OC_ARRAYS_WRITE, together, NULL, &out) != 0) return 1;
  const int32_t count = kProcesses;
  if (store_columns(out, rank, kProcesses) != 0) return 2;
  if (oc_arrays_store_whole(out, "count", OC_TYPE_INT, &count, 0, NULL, NULL) != 0) return 3;
  return oc_arrays_close(out) == 0 ? 0 : 4;
}

static int store_mine(uint32_t rank) {
  oc_communicator together = oc_processes(kProcesses);
  together.rank = rank;
  return store_by(&together, rank);
}

static int one_dies(uint32_t rank) {
  const oc_communicator together = oc_processes(kProcesses);
  oc_arrays* out;
  if (oc_arrays_open(container_path, OC_ARRAYS_UPDATE, &together, NULL, &out) != 0) return 1;
  if (oc_arrays_store_text(out, "new", "text") != 0) return 2;
  if (rank == 1) raise(SIGKILL);
  return oc_arrays_close(out) == 0 ? 0 : 4;
}

static int one_aborts(uint32_t rank) {
  const oc_communicator together = oc_processes(kProcesses);
  oc_arrays* out;
  if (oc_arrays_open(container_path, OC_ARRAYS_UPDATE, &together, NULL, &out) != 0) return 1;
  if (oc_arrays_store_text(out, "new", "text") != 0) return 2;
  if (rank == 1) return oc_arrays_abort(out) == 0 && oc_arrays_abort(out) == -EBADF ? 0 : 3;
  oc_arrays_close(out);
  return 0;
}

// What MPI_Allreduce is: memory that the processes share.
static struct Gathering {
  pthread_barrier_t barrier;
  int has_failed, calls;
} * gathering;

static int any_of_all(void* context, int has_failed) {
  CHECK(context == gathering);
  __atomic_fetch_add(&gathering->calls, 1, __ATOMIC_SEQ_CST);
  if (has_failed != 0) __atomic_store_n(&gathering->has_failed, 1, __ATOMIC_SEQ_CST);
  pthread_barrier_wait(&gathering->barrier);
  return __atomic_load_n(&gathering->has_failed, __ATOMIC_SEQ_CST);
}

static oc_communicator gathered(uint32_t rank) {
  oc_communicator together;
  oc_communicator_init(&together);
  together.rank = rank;
  together.size = kProcesses;
  together.any = any_of_all;
  together.context = gathering;
  return together;
}

static int store_gathered(uint32_t rank) {
  const oc_communicator together = gathered(rank);
  return store_by(&together, rank);
}

// One of them looks for the container where there is no folder.
static int one_cannot_open(uint32_t rank) {
  const oc_communicator together = gathered(rank);
  oc_arrays* in;
  char lost[700];
  snprintf(lost, sizeof lost, "%s/lost/a.oca", folder_path);
  const int result =
      oc_arrays_open(rank == 2 ? lost : container_path, OC_ARRAYS_READ, &together, NULL, &in);
  return result == (rank == 2 ? -ENOENT : -EIO) && in == NULL ? 0 : 1;
}

static void gather(void) {
  pthread_barrierattr_t shared;
  gathering =
      mmap(NULL, sizeof *gathering, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(gathering != MAP_FAILED);
  CHECK(pthread_barrierattr_init(&shared) == 0);
  CHECK(pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) == 0);
  CHECK(pthread_barrier_init(&gathering->barrier, &shared, kProcesses) == 0);
}

typedef struct {
  oc_arrays* out;
  uint32_t rank;
} Share;

static void* store_share(void* argument) {
  const Share* share = argument;
  double row[kColumns];
  for (uint64_t i = share->rank; i < kRows; i += kProcesses) {
    for (uint64_t j = 0; j < kColumns; ++j) row[j] = value_at(i, j);
    const uint64_t at[] = {i, 0}, box[] = {1, kColumns};
    CHECK_OK(oc_arrays_store(share->out, "u", OC_TYPE_DOUBLE, row, 2, at, box));
  }
  return NULL;
}

static void threads_store_at_once(void) {
  pthread_t threads[kProcesses];
  Share shares[kProcesses];
  oc_arrays* out = open_container(OC_ARRAYS_WRITE);
  CHECK_OK(oc_arrays_alloc(out, "u", OC_TYPE_DOUBLE, 2, kShape, NULL));
  for (uint32_t t = 0; t < kProcesses; ++t) {
    shares[t] = (Share){out, t};
    CHECK(pthread_create(&threads[t], NULL, store_share, &shares[t]) == 0);
  }
  for (int t = 0; t < kProcesses; ++t) CHECK(pthread_join(threads[t], NULL) == 0);
  CHECK_OK(oc_arrays_close(out));
  check_u();
}

int main(void) {
  int results[kProcesses];
  make_container_path();
  in_processes(store_mine, results);
  for (int rank = 0; rank < kProcesses; ++rank) CHECK(results[rank] == 0);
  check_u();

  in_processes(one_dies, results);
  CHECK(results[1] == 1000 + SIGKILL);
  oc_arrays* in = open_container(OC_ARRAYS_READ);
  CHECK(oc_arrays_has(in, "new") == 0 && oc_arrays_has(in, "u") == 1);
  CHECK_OK(oc_arrays_close(in));
  check_u();

  in_processes(one_aborts, results);
  for (int rank = 0; rank < kProcesses; ++rank) CHECK(results[rank] == 0);
  in = open_container(OC_ARRAYS_READ);
  CHECK(oc_arrays_has(in, "new") == 0 && oc_arrays_has(in, "u") == 1);
  CHECK_OK(oc_arrays_close(in));

  CHECK(remove(container_path) == 0);
  gather();
  in_processes(store_gathered, results);
  for (int rank = 0; rank < kProcesses; ++rank) CHECK(results[rank] == 0);
  CHECK(gathering->calls == 2 * kProcesses && gathering->has_failed == 0);
  check_u();
  in_processes(one_cannot_open, results);
  for (int rank = 0; rank < kProcesses; ++rank) CHECK(results[rank] == 0);
  threads_store_at_once();
  return 0;
}
