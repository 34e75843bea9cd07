// A C program that has nothing but the installed library: it writes a file through a region, and
// reads it back.
#include <outcore/outcore.h>
#include <stdint.h>
#include <stdio.h>

enum { kCount = 1 << 20 };  // 8 MiB of words, through 4 MiB of memory

static int fail(const char* what) {
  fprintf(stderr, "consumer: %s: %s\n", what, oc_last_error());
  return 1;
}

static int visit(oc_runtime* runtime, const char* path, int is_writer) {
  oc_map_options options;
  oc_map_options_init(&options);
  options.access = is_writer ? OC_READ_WRITE : OC_READ_ONLY;
  options.may_create = is_writer ? 1 : 0;
  options.size_bytes = (uint64_t)kCount * sizeof(uint64_t);
  oc_region* region = NULL;
  if (oc_map(runtime, path, &options, &region) != 0) return fail("oc_map");
  uint64_t* words = oc_data(region);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    if (is_writer)
      words[i] = i * i;
    else if (words[i] != i * i)
      ++wrong;
  }
  if (is_writer && oc_sync(region) != 0) return fail("oc_sync");
  if (oc_unmap(region, 0) != 0) return fail("oc_unmap");
  if (wrong != 0) fprintf(stderr, "consumer: %llu wrong words\n", (unsigned long long)wrong);
  return wrong != 0;
}

int main(int argc, char** argv) {
  if (argc != 2) return fail("name the file to write");
  oc_options options;
  oc_options_init(&options);
  options.budget_bytes = (uint64_t)4 << 20;
  oc_runtime* runtime = NULL;
  if (oc_start(&options, &runtime) != 0) return fail("oc_start");
  if (visit(runtime, argv[1], 1) != 0 || visit(runtime, argv[1], 0) != 0) return 1;
  if (oc_stop(runtime) != 0) return fail("oc_stop");
  printf("outcore %s: %d words written and read back\n", oc_version(), (int)kCount);
  return 0;
}
