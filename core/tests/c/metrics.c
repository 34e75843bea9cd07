// Metrics report what happened, as a struct and as JSON; functions for texts return the size that a
// buffer needs.
#include "core/tests/c/check.h"

static void the_counters_add_up(oc_runtime* runtime) {
  const oc_map_options options = map_options(OC_READ_WRITE, 8 << 20);
  oc_region* region;
  oc_metric_values values;
  CHECK_OK(oc_map(runtime, "memory:", &options, &region));
  char* bytes = oc_data(region);
  for (uint64_t at = 0; at < oc_size(region); at += 4096) bytes[at] = 1;
  CHECK_OK(oc_flush(region));
  oc_metric_values_init(&values);
  CHECK_OK(oc_metrics(runtime, &values));
  CHECK(values.struct_bytes == sizeof values);
  CHECK(values.fills + values.prefetch_fills >= 2048);  // every page, by a fault or ahead of one
  CHECK(values.evictions >= 1024 && values.flushes >= 1);
  CHECK(values.written_bytes >= 8 << 20);
  CHECK(values.write_backs >= 2048);
  CHECK(values.budget_bytes == 4 << 20);
  CHECK(values.used_bytes > 0 && values.used_bytes <= values.used_bytes_max);
  CHECK(values.used_bytes_max <= values.budget_bytes);
  uint64_t timed = 0;
  for (int i = 0; i < OC_LATENCY_BUCKETS; ++i) timed += values.fault_latency[i];
  CHECK(values.faults > 0 && timed > 0);

  oc_metric_values own;
  oc_metric_values_init(&own);
  CHECK_OK(oc_region_metrics(region, &own));
  CHECK(own.write_backs == values.write_backs);
  CHECK(own.used_bytes > 0 && own.used_bytes < 4 << 20 && own.degraded == 0);
  CHECK_OK(oc_unmap(region, 0));
}

static void an_older_program_gets_what_it_knows(oc_runtime* runtime) {
  struct {
    oc_metric_values values;
    uint64_t beyond[4];
  } newer;
  memset(&newer, 0xff, sizeof newer);
  newer.values.struct_bytes = sizeof newer.values + 8;
  CHECK_OK(oc_metrics(runtime, &newer.values));
  CHECK(newer.values.budget_bytes == 4 << 20);
  CHECK(newer.beyond[0] == 0 && newer.beyond[1] == UINT64_MAX);
  newer.values.struct_bytes = 8;
  CHECK_IS(-EINVAL, oc_metrics(runtime, &newer.values));
  CHECK_SAYS("oc_metric_values_init");
  CHECK_IS(-EINVAL, oc_metrics(runtime, NULL));
}

static void texts_say_how_large_they_are(oc_runtime* runtime) {
  size_t needed = 0, again = 0;
  CHECK_OK(oc_metrics_json(runtime, NULL, 0, &needed));
  CHECK(needed > 100);
  char* text = malloc(needed + 64);
  CHECK(text != NULL);
  text[0] = '?';
  CHECK_IS(-ERANGE, oc_metrics_json(runtime, text, 8, &again));
  CHECK_SAYS("the buffer has 8");
  CHECK(text[0] == '?' && again >= 100);
  CHECK_OK(oc_metrics_json(runtime, text, needed + 64, &again));
  CHECK(strlen(text) + 1 == again && text[0] == '{' && text[again - 2] == '}');
  CHECK(strstr(text, "\"write_backs\":") != NULL && strstr(text, "\"p99_ns\":") != NULL);
  CHECK_IS(-EINVAL, oc_metrics_json(runtime, NULL, 8, NULL));
  free(text);
}

static void options_and_info_are_told(oc_runtime* runtime) {
  char text[32768];
  CHECK_OK(oc_describe_options(runtime, text, sizeof text, NULL));
  CHECK(strstr(text, "budget = 4") != NULL && strstr(text, "the program") != NULL);
  CHECK_OK(oc_info_json(text, sizeof text, NULL));
  CHECK(strstr(text, "\"default_budget\":{\"bytes\":") != NULL);
  CHECK(strstr(text, "userfaultfd") != NULL && strstr(text, oc_version()) != NULL);
}

int main(void) {
  oc_runtime* runtime = start(4 << 20);
  the_counters_add_up(runtime);
  an_older_program_gets_what_it_knows(runtime);
  texts_say_how_large_they_are(runtime);
  options_and_info_are_told(runtime);
  CHECK_OK(oc_stop(runtime));
  return 0;
}
