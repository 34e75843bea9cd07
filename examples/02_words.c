// The same in C: a file of words, four times as large as the memory that it may take.
//
//   example_words FILE
#include <inttypes.h>
#include <outcore/outcore.h>
#include <stdio.h>

static int fail(const char* what) {
  fprintf(stderr, "words: %s: %s\n", what, oc_last_error());
  return 1;
}

static int print_metrics(const oc_runtime* runtime) {
  oc_metric_values values;
  oc_metric_values_init(&values);
  if (oc_metrics(runtime, &values) != 0) return fail("metrics");
  printf("%" PRIu64 " pages filled, %" PRIu64 " evicted, %" PRIu64
         " bytes written, at most %" PRIu64 " bytes of memory used\n",
         values.fills + values.prefetch_fills, values.evictions, values.written_bytes,
         values.used_bytes_max);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "words: name a file to make\n");
    return 2;
  }
  oc_options options;
  oc_options_init(&options);
  options.budget_bytes = 16 << 20;
  oc_runtime* runtime;
  if (oc_start(&options, &runtime) != 0) return fail("start");

  oc_map_options how;
  oc_map_options_init(&how);
  how.access = OC_READ_WRITE;
  how.size_bytes = 64 << 20;
  how.may_create = 1;
  oc_region* region;
  if (oc_map(runtime, argv[1], &how, &region) != 0) return fail("map");

  uint64_t* words = oc_data(region);
  const uint64_t count = oc_size(region) / sizeof *words;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) words[i] = i * i;
  for (uint64_t i = 0; i < count; ++i) sum += words[i];
  printf("%" PRIu64 " squares, sum %" PRIu64 "\n", count, sum);

  if (oc_sync(region) != 0) return fail("sync");
  if (print_metrics(runtime) != 0) return 1;
  if (oc_unmap(region, 0) != 0) return fail("unmap");
  return oc_stop(runtime) == 0 ? 0 : fail("stop");
}
