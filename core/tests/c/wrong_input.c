// Wrong input is refused with -errno, and one line says what was wrong, where, and what is valid.
#include "core/tests/c/check.h"

static void null_is_told_by_name(oc_runtime* runtime) {
  oc_region* region = (oc_region*)&region;
  CHECK_IS(-EINVAL, oc_start(NULL, NULL));
  CHECK_SAYS("oc_start: runtime is NULL");
  CHECK_IS(-EINVAL, oc_map(NULL, "memory:", NULL, &region));
  CHECK_SAYS("oc_map: runtime is NULL");
  CHECK(region == NULL);
  CHECK_IS(-EINVAL, oc_map(runtime, NULL, NULL, &region));
  CHECK_SAYS("oc_map: uri is NULL");
  CHECK_IS(-EINVAL, oc_map_store(runtime, NULL, NULL, &region));
  CHECK_IS(-EINVAL, oc_stop(NULL));
  CHECK_IS(-EINVAL, oc_unmap(NULL, 1));
  CHECK_SAYS("oc_unmap: region is NULL");
  CHECK_IS(-EINVAL, oc_release(NULL));
  CHECK_IS(-EINVAL, oc_pin(NULL, 0, 1));
  CHECK_IS(-EINVAL, oc_flush(NULL));
  CHECK_IS(-EINVAL, oc_read(NULL, 0, NULL, 0));
  CHECK(oc_data(NULL) == NULL && oc_size(NULL) == 0 && oc_page_size(NULL) == 0);
  CHECK(oc_budget(NULL) == 0 && oc_reservation_data(NULL) == NULL && *oc_uri(NULL) == 0);
}

static void options_are_refused(void) {
  oc_options options;
  oc_runtime* runtime = (oc_runtime*)&runtime;
  oc_options_init(&options);
  options.budget_bytes = 4096;
  CHECK_IS(-EINVAL, oc_start(&options, &runtime));
  CHECK_SAYS("the least that would do");
  CHECK(runtime == NULL);
  oc_options_init(&options);
  options.policy = "s3-fif";
  CHECK_IS(-EINVAL, oc_start(&options, &runtime));
  CHECK_SAYS("s3-fifo");
  oc_options_init(&options);
  options.delivery = 5;
  CHECK_IS(-EINVAL, oc_start(&options, &runtime));
  CHECK_SAYS("oc_options.delivery = 5: OC_DELIVERY_AUTO (1)");
  oc_options_init(&options);
  options.ignore_environment = 2;
  CHECK_IS(-EINVAL, oc_start(&options, &runtime));
  CHECK_SAYS("0 or 1 will do");
  oc_options_init(&options);
  options.adapts_budget = 2;
  CHECK_IS(-EINVAL, oc_start(&options, &runtime));
  CHECK_SAYS("oc_options.adapts_budget = 2");
  oc_options_init(&options);
  options.adapts_budget = 1;
  options.budget_min_bytes = 64 << 20;
  options.budget_max_bytes = 32 << 20;
  CHECK_IS(-EINVAL, oc_start(&options, &runtime));
  CHECK_SAYS("must not be above budget_max");
  oc_options_init(&options);
  options.high_watermark = 50;
  options.low_watermark = 60;
  CHECK_IS(-EINVAL, oc_start(&options, &runtime));
  CHECK_SAYS("low_watermark");
  memset(&options, 0, sizeof options);
  CHECK_IS(-EINVAL, oc_start(&options, &runtime));
  CHECK_SAYS("oc_options_init()");
}

// A program built with a later release sets a field that this release does not know: it must not be
// ignored.
static void unknown_fields_are_refused(void) {
  struct {
    oc_options options;
    uint64_t later;
  } newer;
  memset(&newer, 0, sizeof newer);
  newer.options.struct_bytes = sizeof newer;
  newer.options.budget_bytes = 8 << 20;
  oc_runtime* runtime;
  CHECK_OK(oc_start(&newer.options, &runtime));
  CHECK_OK(oc_stop(runtime));
  newer.later = 1;
  CHECK_IS(-E2BIG, oc_start(&newer.options, &runtime));
  CHECK_SAYS("does not know");
}

static void map_options_are_refused(oc_runtime* runtime) {
  oc_region* region;
  oc_map_options options = map_options(7, 1 << 20);
  CHECK_IS(-EINVAL, oc_map(runtime, "memory:", &options, &region));
  CHECK_SAYS("oc_map_options.access = 7");
  options = map_options(OC_READ_WRITE, 1 << 20);
  options.page_bytes = 5000;
  CHECK_IS(-EINVAL, oc_map(runtime, "memory:", &options, &region));
  CHECK_SAYS("a power of two from 4 KiB to 16 MiB");
  options = map_options(OC_READ_WRITE, 1 << 20);
  options.offset = 100;
  CHECK_IS(-EINVAL, oc_map(runtime, "memory:", &options, &region));
  CHECK_SAYS("4096");
  options = map_options(OC_READ_WRITE, 1 << 20);
  options.advice = 99;
  CHECK_IS(-EINVAL, oc_map(runtime, "memory:", &options, &region));
  CHECK_SAYS("oc_map_options.advice = 99");
  options = map_options(OC_READ_WRITE, 1 << 20);
  options.address = (void*)(uintptr_t)(1 << 30);
  CHECK_IS(-EINVAL, oc_map(runtime, "memory:", &options, &region));
  CHECK_SAYS("Reservation");
  CHECK_IS(-ENOENT, oc_map(runtime, "no/such/file", NULL, &region));
  CHECK_SAYS("no/such/file");
  CHECK_IS(-EINVAL, oc_map(runtime, "memry:", NULL, &region));
  CHECK_SAYS("memory");
  CHECK(region == NULL);
}

static void ranges_are_refused(oc_runtime* runtime) {
  oc_region* region;
  char byte;
  const oc_map_options options = map_options(OC_READ_WRITE, 1 << 20);
  CHECK_OK(oc_map(runtime, "memory:", &options, &region));
  CHECK_IS(-EINVAL, oc_read(region, 1 << 20, &byte, 1));
  CHECK_SAYS("the region ends at 1048576");
  CHECK_IS(-EINVAL, oc_read(region, 0, NULL, 1));
  CHECK_SAYS("oc_read: into is NULL");
  CHECK_IS(-EINVAL, oc_pin(region, 0, 2 << 20));
  CHECK_IS(-EINVAL, oc_flush_range(region, UINT64_MAX, 2));
  const uint64_t page = 256;
  CHECK_IS(-EINVAL, oc_prefetch_list(region, &page, 1));
  CHECK_SAYS("256 pages");
  CHECK_IS(-EINVAL, oc_prefetch_list(region, NULL, 1));
  CHECK_IS(-EINVAL, oc_advise(region, 0, 4096, 6));
  CHECK_SAYS("oc_advise: advice = 6");
  CHECK_IS(-EBUSY, oc_stop(runtime));
  CHECK_SAYS("1 region(s)");
  CHECK_OK(oc_unmap(region, 0));
  CHECK_SAYS("1 region(s)");  // a call that succeeds changes nothing
}

int main(void) {
  CHECK(*oc_last_error() == 0);
  oc_runtime* runtime = start(4 << 20);
  null_is_told_by_name(runtime);
  options_are_refused();
  unknown_fields_are_refused();
  map_options_are_refused(runtime);
  ranges_are_refused(runtime);
  CHECK_OK(oc_stop(runtime));
  return 0;
}
