// Heaps in C: the default one, made from the environment, and one of a runtime.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/tests/c/check.h"

enum { kBlocks = 4096, kBytes = 8192 };  // 32 MiB, four times the budget

static void fill_and_check(void* (*take)(size_t), void (*give)(void*)) {
  static uint64_t* blocks[kBlocks];
  for (uint64_t i = 0; i < kBlocks; ++i) {
    blocks[i] = take(kBytes);
    CHECK(blocks[i] != NULL);
    for (uint64_t at = 0; at < kBytes / 8; at += 64) blocks[i][at] = word_of(i + at);
  }
  for (uint64_t i = 0; i < kBlocks; ++i) {
    for (uint64_t at = 0; at < kBytes / 8; at += 64) CHECK(blocks[i][at] == word_of(i + at));
    give(blocks[i]);
  }
}

static void the_default_heap_is_there_at_once(void) {
  CHECK(oc_usable_size(NULL) == 0);
  oc_free(NULL);
  char* text = oc_malloc(100);
  CHECK(text != NULL && oc_usable_size(text) >= 100);
  memset(text, 'x', 100);
  text = oc_realloc(text, 1 << 20);
  CHECK(text != NULL && text[99] == 'x');
  CHECK(oc_realloc(text, 0) == NULL);
  uint64_t* zeros = oc_calloc(1000, sizeof *zeros);
  for (int i = 0; i < 1000; ++i) CHECK(zeros[i] == 0);
  oc_free(zeros);
  void* aligned = oc_aligned_alloc(1 << 16, 3);
  CHECK(aligned != NULL && (uintptr_t)aligned % (1 << 16) == 0);
  oc_free(aligned);
  fill_and_check(oc_malloc, oc_free);
  oc_heap_values values;
  oc_heap_values_init(&values);
  CHECK_OK(oc_heap_metrics(oc_default_heap(), &values));
  CHECK(values.allocated_blocks == 0 && values.address_bytes >= kBlocks * kBytes);
  CHECK_IS(-EINVAL, oc_heap_destroy(oc_default_heap()));
}

static void what_cannot_be_is_told(void) {
  errno = 0;
  CHECK(oc_malloc(SIZE_MAX) == NULL && errno == ENOMEM);
  CHECK_SAYS("reserve_bytes");
  errno = 0;
  CHECK(oc_calloc(SIZE_MAX / 2, 3) == NULL && errno == ENOMEM);
  errno = 0;
  CHECK(oc_aligned_alloc(3, 8) == NULL && errno == EINVAL);
  CHECK_SAYS("power of two");
}

static oc_heap* heap;
static void* take(size_t size_bytes) { return oc_heap_malloc(heap, size_bytes); }
static void give(void* block) { oc_heap_free(heap, block); }

static void a_heap_of_a_runtime(void) {
  oc_runtime* runtime = start(8 << 20);
  oc_heap_options options;
  oc_heap_options_init(&options);
  options.reserve_bytes = 1 << 28;
  options.name = "numbers";
  CHECK_OK(oc_heap_create(runtime, &options, &heap));
  fill_and_check(take, give);
  CHECK_OK(oc_heap_trim(heap));
  CHECK(oc_heap_malloc(heap, 1 << 29) == NULL && errno == ENOMEM);
  CHECK_SAYS("numbers");
  oc_free(NULL);
  CHECK_IS(-EBUSY, oc_stop(runtime));
  CHECK_SAYS("oc_heap_destroy");
  CHECK(oc_heap_calloc(heap, 10, 10) != NULL);  // goes with the heap
  CHECK_OK(oc_heap_destroy(heap));
  options.store = "scratch:/nowhere/at/all";
  CHECK_IS(-ENOENT, oc_heap_create(runtime, &options, &heap));
  CHECK(heap == NULL);
  options.store = NULL;
  options.unused = 0;
  options.advice = 99;
  CHECK_IS(-EINVAL, oc_heap_create(runtime, &options, &heap));
  CHECK_IS(-EINVAL, oc_heap_create(NULL, NULL, &heap));
  CHECK_IS(-EINVAL, oc_heap_destroy(NULL));
  CHECK_OK(oc_stop(runtime));
}

static void a_child_gets_eperm(void) {
  void* block = oc_malloc(64);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    CHECK(oc_malloc(64) == NULL && errno == EPERM);
    CHECK_SAYS("forked child");
    CHECK(oc_malloc(1 << 20) == NULL && errno == EPERM);
    oc_free(block);
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  oc_free(block);
}

#ifndef __SANITIZE_ADDRESS__  // whose allocator's own lock may be held over the fork, for ever
static void* begin_a_heap(void* ignored) {
  (void)ignored;
  oc_free(oc_malloc(64));
  return NULL;
}

// The lock of what is being made is held by nobody in the child. It ends by SIGALRM if it waits.
static void a_fork_beside_the_first_allocation_leaves_nobody_waiting(void) {
  for (unsigned round = 0; round < 100; ++round) {
    const pid_t beginner = fork();
    CHECK(beginner >= 0);
    if (beginner == 0) {
      pthread_t thread;
      CHECK(pthread_create(&thread, NULL, begin_a_heap, NULL) == 0);
      for (unsigned i = 0; i < round * 5; ++i) sched_yield();
      const pid_t child = fork();
      CHECK(child >= 0);
      if (child == 0) {
        alarm(60);
        char* block = oc_malloc(64);
        CHECK(block != NULL || errno == EPERM);  // EPERM: the parent had made it
        if (block != NULL) memset(block, 1, 64);
        _exit(0);
      }
      int status = 1;
      CHECK(waitpid(child, &status, 0) == child && status == 0);
      CHECK(pthread_join(thread, NULL) == 0);
      _exit(0);
    }
    int status = 1;
    CHECK(waitpid(beginner, &status, 0) == beginner && status == 0);
  }
}
#endif

int main(void) {
  CHECK(setenv("OUTCORE_BUDGET", "8M", 1) == 0);
#ifndef __SANITIZE_ADDRESS__
  a_fork_beside_the_first_allocation_leaves_nobody_waiting();
#endif
  the_default_heap_is_there_at_once();
  what_cannot_be_is_told();
  a_heap_of_a_runtime();
  a_child_gets_eperm();
  return 0;
}
