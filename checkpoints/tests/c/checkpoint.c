// oc_checkpoint and oc_restart: a region and a number are as they were, and what is wrong is said.
#define _GNU_SOURCE
#include "core/tests/c/check.h"
#include "core/tests/c/folder.h"

enum { kWords = 1 << 16 };
static const uint64_t kBytes = kWords * sizeof(uint64_t);
static char pool[600], grid[700];

static int quiesced, resumed, will_refuse;
static int quiesce(void* context) {
  CHECK(context == &quiesced);
  ++quiesced;
  return will_refuse ? -ECANCELED : 0;
}
static void resume(void* context) {
  CHECK(context == &quiesced);
  ++resumed;
}

static oc_region* map_grid(oc_runtime* runtime) {
  oc_map_options options = map_options(OC_READ_WRITE, kBytes);
  options.may_create = 1;
  oc_region* region;
  CHECK_OK(oc_map(runtime, grid, &options, &region));
  return region;
}

static void check_wrong_input(const oc_region* region) {
  oc_checkpoint_part part = {region, NULL, NULL, 0};
  oc_checkpoint_options options;
  oc_checkpoint_options_init(&options);
  CHECK_IS(-EINVAL, oc_checkpoint(NULL, &part, 1, NULL, NULL));
  CHECK_IS(-EINVAL, oc_checkpoint("a", NULL, 1, NULL, NULL));
  CHECK_IS(-EINVAL, oc_checkpoint("a", NULL, 0, NULL, NULL));
  CHECK_SAYS("it would have no part");
  CHECK_IS(-EINVAL, oc_checkpoint("", &part, 1, NULL, NULL));
  options.quiesce = quiesce;
  CHECK_IS(-EINVAL, oc_checkpoint("a", &part, 1, &options, NULL));
  CHECK_SAYS("both quiesce and resume");
  options.quiesce = NULL;
  options.leaves_threads = 2;
  CHECK_IS(-EINVAL, oc_checkpoint("a", &part, 1, &options, NULL));
  options.leaves_threads = 0;
  options.struct_bytes = 8;
  CHECK_IS(-EINVAL, oc_checkpoint("a", &part, 1, &options, NULL));
  CHECK_SAYS("oc_checkpoint_options_init()");
  part.memory = &options;
  CHECK_IS(-EINVAL, oc_checkpoint("a", &part, 1, NULL, NULL));
  CHECK_SAYS("not both");
  oc_checkpoint_part nothing = {NULL, "x", NULL, 8};
  CHECK_IS(-EINVAL, oc_checkpoint("a", &nothing, 1, NULL, NULL));
  nothing.memory = &options;
  nothing.size_bytes = UINT64_MAX - 8;
  CHECK_IS(-EINVAL, oc_checkpoint("a", &nothing, 1, NULL, NULL));
  oc_restarted* last = (oc_restarted*)&part;
  CHECK_IS(-ENOENT, oc_restart(pool, "never", &last));
  CHECK(last == NULL);
  CHECK_IS(-EINVAL, oc_restart(NULL, NULL, &last));
  CHECK_IS(-EINVAL, oc_restart("file:x", NULL, &last));
  CHECK_IS(-EINVAL, oc_restarted_read(NULL, "x", &part, 1));
  CHECK(strcmp(oc_restarted_name(NULL), "") == 0);
  oc_restarted_free(NULL);
}

int main(void) {
  snprintf(pool, sizeof pool, "versioned:%s/pool", make_folder());
  snprintf(grid, sizeof grid, "%s?object=grid", pool);
  oc_runtime* runtime = start(1 << 20);
  oc_region* region = map_grid(runtime);
  uint64_t* words = oc_data(region);
  for (uint64_t i = 0; i < kWords; ++i) words[i] = word_of(i);
  uint64_t step = 7, pause_ns = 0;
  const oc_checkpoint_part parts[] = {{region, NULL, NULL, 0}, {NULL, "step", &step, sizeof step}};
  CHECK_OK(oc_checkpoint("first", parts, 2, NULL, &pause_ns));
  CHECK(pause_ns > 0);
  CHECK_IS(-EEXIST, oc_checkpoint("first", parts, 2, NULL, NULL));
  for (uint64_t i = 0; i < kWords; ++i) words[i] = 0;
  step = 8;

  // A function that brings the program to rest: no thread is stopped; its refusal is the outcome.
  oc_checkpoint_options options;
  oc_checkpoint_options_init(&options);
  options.quiesce = quiesce;
  options.resume = resume;
  options.context = &quiesced;
  options.comment = "all zeros";
  will_refuse = 1;
  CHECK_IS(-ECANCELED, oc_checkpoint("second", parts, 2, &options, NULL));
  CHECK(quiesced == 1 && resumed == 0);
  will_refuse = 0;
  CHECK_OK(oc_checkpoint("second", parts, 2, &options, NULL));
  CHECK(quiesced >= 2 && resumed == quiesced - 1);
  check_wrong_input(region);
  CHECK_OK(oc_unmap(region, 0));

  oc_restarted* last;
  CHECK_OK(oc_restart(pool, "first", &last));
  CHECK(strcmp(oc_restarted_name(last), "first") == 0);
  CHECK_OK(oc_restarted_read(last, "step", &step, sizeof step));
  CHECK(step == 7);
  uint64_t size = 0;
  CHECK_OK(oc_restarted_size(last, "grid", &size));
  CHECK(size == kBytes);
  CHECK_IS(-EINVAL, oc_restarted_read(last, "step", &step, 4));
  CHECK_IS(-ENOENT, oc_restarted_size(last, "gird", &size));
  CHECK_SAYS("grid");
  oc_restarted_free(last);
  region = map_grid(runtime);
  words = oc_data(region);
  for (uint64_t i = 0; i < kWords; ++i) CHECK(words[i] == word_of(i));
  CHECK_OK(oc_unmap(region, 0));
  CHECK_OK(oc_restart(pool, NULL, &last));
  CHECK(strcmp(oc_restarted_name(last), "second") == 0);
  oc_restarted_free(last);
  CHECK_OK(oc_stop(runtime));
  return 0;
}
