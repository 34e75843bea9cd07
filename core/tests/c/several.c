// Several runtimes and threads: each runtime has its own budget, each thread its own last error;
// and a forked child can neither use nor harm its parent's regions.
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>

#include "core/tests/c/check.h"
#include "core/tests/c/file.h"

enum { kWords = 1 << 20, kThreads = 4 };

typedef struct {
  oc_region* region;
  uint64_t part;
} Share;

static void* add_one_to_a_part(void* argument) {
  const Share* share = argument;
  uint64_t* words = oc_data(share->region);
  for (uint64_t i = share->part; i < kWords; i += kThreads) words[i] += 1;
  CHECK(*oc_last_error() == 0);
  CHECK_IS(-EINVAL, oc_pin(share->region, UINT64_MAX, 1 + share->part));
  char size[32];
  snprintf(size, sizeof size, "pin %d bytes", (int)(1 + share->part));
  CHECK_SAYS(size);
  return NULL;
}

static void threads_share_a_region(oc_region* region) {
  pthread_t threads[kThreads];
  Share shares[kThreads];
  for (uint64_t t = 0; t < kThreads; ++t) {
    shares[t] = (Share){region, t};
    CHECK(pthread_create(&threads[t], NULL, add_one_to_a_part, &shares[t]) == 0);
  }
  for (int t = 0; t < kThreads; ++t) CHECK(pthread_join(threads[t], NULL) == 0);
  CHECK(*oc_last_error() == 0);
}

static void a_child_gets_eperm(oc_runtime* runtime, oc_region* region) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    char byte;
    oc_region* other;
    CHECK_IS(-EPERM, oc_read(region, 0, &byte, 1));
    CHECK_SAYS("forked child");
    CHECK_IS(-EPERM, oc_map(runtime, "memory:", NULL, &other));
    CHECK_IS(-EPERM, oc_unmap(region, 0));
    CHECK_IS(-EPERM, oc_unmap(region, 1));  // the region is gone
// TSan does not support new threads in the child of a process with threads
#ifndef __SANITIZE_THREAD__
    oc_runtime* own = start(4 << 20);
    oc_map_options options = map_options(OC_READ_ONLY, 0);
    options.delivery = OC_DELIVERY_MPROTECT;  // its faults look like the touch of a placeholder
    CHECK_OK(oc_map(own, file_path, &options, &other));
    CHECK(*(uint64_t*)oc_data(other) == word_in_file(0));
    CHECK_OK(oc_unmap(other, 0));
    CHECK_OK(oc_stop(own));
#endif
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  const char* path = make_file(kWords);
  oc_runtime *first = start(3 << 20), *second = start(4 << 20);
  CHECK(oc_budget(first) == 3 << 20 && oc_budget(second) == 4 << 20);
  const oc_map_options shared = map_options(OC_READ_WRITE, 0);
  const oc_map_options scratch = map_options(OC_READ_WRITE, kWords * sizeof(uint64_t));
  oc_region *of_file, *of_scratch;
  CHECK_OK(oc_map(first, path, &shared, &of_file));
  CHECK_OK(oc_map(second, "scratch:", &scratch, &of_scratch));
  threads_share_a_region(of_file);
  memcpy(oc_data(of_scratch), oc_data(of_file), kWords * sizeof(uint64_t));
  a_child_gets_eperm(first, of_file);
  CHECK_OK(oc_unmap(of_file, 0));
  CHECK_OK(oc_stop(first));
  const uint64_t* copy = oc_data(of_scratch);
  for (uint64_t i = 0; i < kWords; ++i) CHECK(copy[i] == word_of(i) + 1);
  for (uint64_t i = 0; i < kWords; i += 977) CHECK(word_in_file(i) == word_of(i) + 1);
  CHECK_OK(oc_unmap(of_scratch, 0));
  CHECK_OK(oc_stop(second));
  return 0;
}
