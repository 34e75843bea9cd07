// Pinned pages stay in memory while others are evicted; the kernel may use them; the budget is
// kept.
#define _GNU_SOURCE
#include "core/tests/c/check.h"
#include "core/tests/c/file.h"

enum { kWords = 1 << 20 };  // 8 MiB
static const uint64_t kBytes = kWords * sizeof(uint64_t);

static uint64_t touch_all(const uint64_t* words) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < kWords; i += 512) wrong += words[i + 1] != word_of(i + 1);
  return wrong;
}

int main(void) {
  const char* path = make_file(kWords);
  oc_runtime* runtime = start(3 << 20);
  const oc_map_options options = map_options(OC_READ_WRITE, 0);
  oc_region* region;
  CHECK_OK(oc_map(runtime, path, &options, &region));
  uint64_t* words = oc_data(region);

  // The kernel writes into pinned pages without a fault.
  CHECK_OK(oc_pin(region, 0, 64 << 10));
  int ends[2];
  CHECK(pipe(ends) == 0);
  uint64_t sent[16];
  for (uint64_t i = 0; i < 16; ++i) sent[i] = i + 1000;
  CHECK(write(ends[1], sent, sizeof sent) == (ssize_t)sizeof sent);
  CHECK(read(ends[0], words + 16, sizeof sent) == (ssize_t)sizeof sent);
  CHECK(touch_all(words) == 0);
  CHECK(memcmp(words + 16, sent, sizeof sent) == 0);
  CHECK_OK(oc_flush(region));
  for (uint64_t i = 0; i < 16; ++i) CHECK(word_in_file(16 + i) == sent[i]);

  // Pins nest, and what is not pinned cannot be unpinned.
  CHECK_OK(oc_pin(region, 0, 4096));
  CHECK_OK(oc_unpin(region, 0, 4096));
  CHECK_OK(oc_unpin(region, 0, 64 << 10));
  CHECK_IS(-EINVAL, oc_unpin(region, 0, 4096));
  CHECK_IS(-ENOMEM, oc_pin(region, 0, kBytes));
  CHECK_SAYS("the least that would do");

  // A smaller and then a larger budget: the data stays correct.
  CHECK(oc_budget(runtime) == 3 << 20);
  CHECK_OK(oc_resize_budget(runtime, 16 << 20));
  CHECK(oc_budget(runtime) == 16 << 20);
  CHECK(touch_all(words) == 0);
  CHECK_OK(oc_resize_budget(runtime, 3 << 20));
  CHECK(touch_all(words) == 0);
  CHECK_IS(-EINVAL, oc_resize_budget(runtime, 4096));
  CHECK(oc_budget(runtime) == 3 << 20);

  CHECK_OK(oc_advise(region, 0, kBytes, OC_ADVICE_DONT_NEED));
  CHECK_OK(oc_advise(region, 0, kBytes, OC_ADVICE_RANDOM));
  CHECK_OK(oc_advise(region, 0, kBytes, OC_ADVICE_SEQUENTIAL));
  CHECK_OK(oc_advise(region, 0, 1 << 20, OC_ADVICE_WILL_NEED));
  CHECK_OK(oc_advise(region, 0, kBytes, OC_ADVICE_COLD));
  CHECK_OK(oc_advise(region, 0, kBytes, OC_ADVICE_NORMAL));
  CHECK(touch_all(words) == 0);
  CHECK_OK(oc_unmap(region, 0));
  CHECK_OK(oc_stop(runtime));
  close(ends[0]);
  close(ends[1]);
  return 0;
}
