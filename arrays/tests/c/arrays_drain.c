// Drains in C: all arrays or some are there, they are removed and found all the same; cancelled and
// resumed; what is refused.
#define _GNU_SOURCE
#include "outcore/arrays_drain_c.h"

#include <sys/wait.h>

#include "core/tests/c/check.h"
#include "core/tests/c/folder.h"
// After folder.h, which it needs.
#include "arrays/tests/c/container.h"

enum { kCount = 100000 };
static const uint64_t kShape[] = {kCount};
static double numbers[kCount], loaded[kCount];
static char far_path[600];

static void make(void) {
  oc_arrays* out = open_container(OC_ARRAYS_WRITE);
  for (size_t i = 0; i < kCount; ++i) numbers[i] = value_at(i, 1);
  for (int i = 0; i < 3; ++i) {
    char name[8];
    snprintf(name, sizeof name, "u%d", i);
    CHECK_OK(oc_arrays_store_whole(out, name, OC_TYPE_DOUBLE, numbers, 1, kShape, NULL));
  }
  CHECK_OK(oc_arrays_store_text(out, "title", "a flame"));
  CHECK_OK(oc_arrays_close(out));
}

// All four, by whichever container.
static void check_all(const char* uri) {
  oc_arrays* in = NULL;
  char title[16];
  CHECK_OK(oc_arrays_open(uri, OC_ARRAYS_READ, NULL, NULL, &in));
  for (int i = 0; i < 3; ++i) {
    char name[8];
    snprintf(name, sizeof name, "u%d", i);
    memset(loaded, 0, sizeof loaded);
    CHECK_OK(oc_arrays_load_whole(in, name, OC_TYPE_DOUBLE, loaded, sizeof loaded));
    CHECK(memcmp(loaded, numbers, sizeof loaded) == 0);
  }
  CHECK_OK(oc_arrays_load_text(in, "title", title, sizeof title, NULL));
  CHECK(strcmp(title, "a flame") == 0);
  CHECK_OK(oc_arrays_close(in));
}

static oc_arrays_drain* start_drain(const oc_drain_options* options) {
  oc_arrays_drain* drain = NULL;
  CHECK_OK(oc_arrays_drain_start(container_path, far_path, options, &drain));
  CHECK(drain != NULL);
  return drain;
}

static oc_drain_progress progress_of(const oc_arrays_drain* drain) {
  oc_drain_progress progress;
  oc_drain_progress_init(&progress);
  CHECK_OK(oc_arrays_drain_progress(drain, &progress));
  return progress;
}

static void what_is_cancelled_goes_on_later(void) {
  oc_drain_options options;
  oc_drain_options_init(&options);
  options.bytes_per_second = 1;
  oc_arrays_drain* drain = start_drain(&options);
  while (progress_of(drain).bytes_done == 0) CHECK(oc_arrays_drain_wait_for(drain, 1) == 0);
  CHECK(oc_arrays_drain_wait_for(drain, 0) == 0 && progress_of(drain).has_ended == 0);
  CHECK(progress_of(drain).array[0] != 0);

  const pid_t child = fork();
  if (child == 0) {
    oc_drain_progress progress;
    oc_drain_progress_init(&progress);
    CHECK_IS(-EPERM, oc_arrays_drain_wait(drain));
    CHECK_SAYS("parent");
    CHECK_IS(-EPERM, oc_arrays_drain_wait_for(drain, 5));
    CHECK_IS(-EPERM, oc_arrays_drain_progress(drain, &progress));
    CHECK_IS(-EPERM, oc_arrays_drain_cancel(drain));
    oc_arrays_drain_free(drain);
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);

  CHECK_OK(oc_arrays_drain_cancel(drain));  // else it would take days
  CHECK_IS(-ECANCELED, oc_arrays_drain_wait(drain));
  CHECK_IS(-ECANCELED, oc_arrays_drain_wait(drain));
  CHECK_SAYS("cancelled");
  CHECK(oc_arrays_drain_wait_for(drain, UINT64_MAX) == 1);
  CHECK(progress_of(drain).arrays_done < 4);
  oc_arrays_drain_free(drain);
  oc_arrays_drain_free(start_drain(&options));  // while it runs: cancels, too
}

static void some_go_by_name(void) {
  const char* const names[] = {"u1", "title"};
  oc_drain_options options;
  oc_drain_options_init(&options);
  options.names = names;
  options.name_count = 2;
  oc_arrays_drain* drain = start_drain(&options);
  CHECK_OK(oc_arrays_drain_wait(drain));
  CHECK(progress_of(drain).arrays == 2);
  oc_arrays_drain_free(drain);
  oc_arrays* in = NULL;
  CHECK_OK(oc_arrays_open(far_path, OC_ARRAYS_READ, NULL, NULL, &in));
  CHECK(oc_arrays_has(in, "u1") && oc_arrays_has(in, "title") && !oc_arrays_has(in, "u2"));
  CHECK_OK(oc_arrays_close(in));
}

static void all_are_there_and_removed_here(void) {
  oc_arrays_drain* drain = start_drain(NULL);
  while (oc_arrays_drain_wait_for(drain, 10) == 0) continue;
  CHECK_OK(oc_arrays_drain_wait(drain));
  const oc_drain_progress done = progress_of(drain);
  CHECK(done.struct_bytes == sizeof done && done.has_ended == 1);
  CHECK(done.arrays == 4 && done.arrays_done == 4);
  CHECK(done.bytes == 3 * sizeof numbers + 7 && done.bytes_done == done.bytes);
  oc_arrays_drain_free(drain);
  check_all(far_path);

  struct {
    oc_drain_options known;
    uint64_t newer;
  } later;
  memset(&later, 0, sizeof later);
  later.known.struct_bytes = sizeof later;  // a program of a later release that sets nothing new
  later.known.may_remove = 1;
  drain = start_drain(&later.known);
  CHECK_OK(oc_arrays_drain_wait(drain));
  oc_arrays_drain_free(drain);
  check_all(container_path);
  CHECK(unlink(far_path) == 0);
  oc_arrays* in = open_container(OC_ARRAYS_READ);
  CHECK_IS(-ENOLINK, oc_arrays_load_whole(in, "u0", OC_TYPE_DOUBLE, loaded, sizeof loaded));
  CHECK_SAYS("drained to");
  CHECK_OK(oc_arrays_close(in));
}

static void other_stores_take_them(void) {
  char uri[700];
  snprintf(uri, sizeof uri, "sparse:%s/far", folder_path);
  oc_runtime* runtime = start(8 << 20);
  oc_drain_options options;
  oc_drain_options_init(&options);
  options.runtime = runtime;
  oc_arrays_drain* drain = NULL;
  CHECK_OK(oc_arrays_drain_start(container_path, uri, &options, &drain));
  CHECK_OK(oc_arrays_drain_wait(drain));
  CHECK_IS(-EBUSY, oc_stop(runtime));
  CHECK_SAYS("oc_arrays_drain_free");
  oc_arrays_drain_free(drain);
  CHECK_OK(oc_stop(runtime));
  check_all(uri);
}

static void what_is_wrong_is_refused(void) {
  oc_arrays_drain* drain = (oc_arrays_drain*)&drain;
  const char* const names[] = {"u1", NULL, "u9"};
  oc_drain_options options;
  CHECK_IS(-EINVAL, oc_arrays_drain_start(container_path, far_path, NULL, NULL));
  CHECK_SAYS("oc_arrays_drain_start: drain is NULL");
  CHECK_IS(-EINVAL, oc_arrays_drain_start(NULL, far_path, NULL, &drain));
  CHECK(drain == NULL);
  CHECK_SAYS("from is NULL");
  CHECK_IS(-EINVAL, oc_arrays_drain_start(container_path, NULL, NULL, &drain));
  CHECK_SAYS("to is NULL");
  CHECK_IS(-EINVAL, oc_arrays_drain_start(container_path, container_path, NULL, &drain));
  CHECK_SAYS("both are one");

  memset(&options, 0, sizeof options);
  CHECK_IS(-EINVAL, oc_arrays_drain_start(container_path, far_path, &options, &drain));
  CHECK_SAYS("oc_drain_options_init()");
  struct {
    oc_drain_options known;
    uint64_t newer;
  } later;
  oc_drain_options_init(&later.known);
  later.known.struct_bytes = sizeof later;
  later.newer = 1;
  CHECK_IS(-E2BIG, oc_arrays_drain_start(container_path, far_path, &later.known, &drain));
  oc_drain_options_init(&options);
  options.names = names;
  CHECK_IS(-EINVAL, oc_arrays_drain_start(container_path, far_path, &options, &drain));
  CHECK_SAYS("how many");
  options.name_count = 2;
  CHECK_IS(-EINVAL, oc_arrays_drain_start(container_path, far_path, &options, &drain));
  CHECK_SAYS("names[1] is NULL");
  options.names = names + 2;
  options.name_count = 1;
  CHECK_IS(-ENOENT, oc_arrays_drain_start(container_path, far_path, &options, &drain));
  CHECK_SAYS("u0");  // the nearest
  options.names = NULL;
  CHECK_IS(-EINVAL, oc_arrays_drain_start(container_path, far_path, &options, &drain));
  options.name_count = 0;
  options.may_remove = 2;
  CHECK_IS(-EINVAL, oc_arrays_drain_start(container_path, far_path, &options, &drain));
  CHECK_SAYS("may_remove = 2");
  CHECK(drain == NULL && access(far_path, F_OK) != 0);

  oc_drain_progress progress;
  oc_drain_progress_init(&progress);
  CHECK_IS(-EINVAL, oc_arrays_drain_wait(NULL));
  CHECK_SAYS("oc_arrays_drain_wait: drain is NULL");
  CHECK_IS(-EINVAL, oc_arrays_drain_wait_for(NULL, 0));
  CHECK_IS(-EINVAL, oc_arrays_drain_cancel(NULL));
  CHECK_IS(-EINVAL, oc_arrays_drain_progress(NULL, &progress));
  oc_arrays_drain_free(NULL);
  check_all(container_path);
}

static void progress_needs_its_struct(void) {
  oc_arrays_drain* drain = start_drain(NULL);
  oc_drain_progress progress;
  memset(&progress, 0, sizeof progress);
  CHECK_IS(-EINVAL, oc_arrays_drain_progress(drain, NULL));
  CHECK_IS(-EINVAL, oc_arrays_drain_progress(drain, &progress));
  CHECK_SAYS("oc_drain_progress_init()");
  CHECK_OK(oc_arrays_drain_wait(drain));
  oc_arrays_drain_free(drain);
  CHECK(unlink(far_path) == 0);
}

int main(void) {
  setenv("OUTCORE_BUDGET", "16M", 1);
  make_container_path();
  snprintf(far_path, sizeof far_path, "%s/far.oca", folder_path);
  make();
  what_is_wrong_is_refused();
  progress_needs_its_struct();
  what_is_cancelled_goes_on_later();
  some_go_by_name();
  other_stores_take_them();
  all_are_there_and_removed_here();
  return 0;
}
