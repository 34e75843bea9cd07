// oc_ssd_malloc and its checkpoints: each step runs in a program of its own, the last of which was
// killed in the middle.
#define _GNU_SOURCE
#include "outcore/ssd.h"

#include <signal.h>
#include <sys/wait.h>

#include "core/tests/c/check.h"
#include "core/tests/c/folder.h"

enum { kWords = 1 << 17 };  // 1 MiB
static const size_t kBytes = kWords * sizeof(uint64_t);

static const char* this_program;

// Runs the step in a new program; its status.
static int run(const char* step) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    execl(this_program, this_program, step, (char*)NULL);
    _exit(127);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return status;
}

static uint64_t* grid_of(size_t bytes) { return oc_ssd_malloc("grid", bytes); }

// Two checkpoints, and a death between them and a third.
static void compute(void) {
  uint64_t step = 0;
  CHECK_IS(-ENOENT, oc_ssd_restart(NULL, &step, sizeof step));
  uint64_t* grid = grid_of(kBytes);
  CHECK(grid != NULL);
  for (; step < 2; ++step) {
    for (uint64_t i = 0; i < kWords; ++i) grid[i] = word_of(i) + step;
    CHECK_OK(oc_ssd_checkpoint("last", &step, sizeof step));
  }
  uint64_t* second = oc_ssd_malloc("second", 4096);
  CHECK(second != NULL);
  *second = 5;
  CHECK_OK(oc_ssd_checkpoint("with second", &step, sizeof step));
  for (uint64_t i = 0; i < kWords; ++i) grid[i] = 0;
  raise(SIGKILL);
}

static void go_on(void) {
  uint64_t step = 0;
  uint32_t half = 0;
  CHECK_IS(-EINVAL, oc_ssd_restart("last", &half, sizeof half));
  CHECK_SAYS("8 bytes of ordinary memory, not 4");
  CHECK_IS(-ENOENT, oc_ssd_restart("lost", &step, sizeof step));
  CHECK_OK(oc_ssd_restart("last", &step, sizeof step));
  CHECK(step == 1);
  errno = 0;
  CHECK(grid_of(kBytes / 2) == NULL && errno == EINVAL);
  uint64_t* grid = grid_of(kBytes);
  CHECK(grid != NULL);
  CHECK(grid_of(kBytes) == NULL && errno == EBUSY);
  for (uint64_t i = 0; i < kWords; ++i) CHECK(grid[i] == word_of(i) + 1);
  CHECK_IS(-EBUSY, oc_ssd_restart(NULL, NULL, 0));
  // What is freed is not in what follows.
  CHECK_OK(oc_ssd_free(grid));
  CHECK_IS(-EINVAL, oc_ssd_free(grid));
  CHECK_OK(oc_ssd_free(NULL));
  grid = grid_of(kBytes);
  CHECK(grid != NULL);
  for (uint64_t i = 0; i < kWords; ++i) CHECK(grid[i] == 0);
  CHECK(oc_ssd_malloc(NULL, 8) == NULL && errno == EINVAL);
  CHECK(oc_ssd_malloc("none", 0) == NULL && errno == EINVAL);
  // Without the range, the one of a checkpoint before is not in it; names may hold anything.
  CHECK(oc_ssd_malloc("a%20b&at=x", 8) != NULL);
  CHECK_OK(oc_ssd_checkpoint("bare", NULL, 0));
  CHECK_OK(oc_ssd_free(grid));
  // A forked child has none of it.
  const pid_t child = fork();
  if (child == 0)
    _exit(oc_ssd_malloc("child", 8) == NULL && errno == EPERM &&
                  oc_ssd_checkpoint("child", NULL, 0) == -EPERM
              ? 0
              : 1);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void look_at_newest(void) {
  uint64_t step = 0;
  CHECK_IS(-EINVAL, oc_ssd_restart("bare", &step, sizeof step));
  CHECK_SAYS("has 0 bytes of ordinary memory");
  CHECK_OK(oc_ssd_restart("with second", &step, sizeof step));
  CHECK(step == 2);
  uint64_t* second = oc_ssd_malloc("second", 4096);
  CHECK(second != NULL && *second == 5);
}

int main(int count, char** arguments) {
  this_program = arguments[0];
  if (count == 1) {
    unsetenv("OUTCORE_POOL");
    CHECK(oc_ssd_malloc("grid", 8) == NULL && errno == ENOENT);
    CHECK_SAYS("OUTCORE_POOL");
    char pool[600];
    snprintf(pool, sizeof pool, "%s/pool", make_folder());
    setenv("OUTCORE_POOL", pool, 1);
    setenv("OUTCORE_BUDGET", "1M", 1);
    const int killed = run("compute");
    CHECK(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL);
    CHECK(run("go on") == 0);
    CHECK(run("look at newest") == 0);
    return 0;
  }
  const char* step = arguments[1];
  if (strcmp(step, "compute") == 0)
    compute();
  else if (strcmp(step, "go on") == 0)
    go_on();
  else
    look_at_newest();
  return 0;
}
