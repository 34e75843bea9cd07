// metrics_at_exit for programs that start no runtime themselves (oc_malloc and oc_ssd_malloc).
// Several processes that write to one path leave a line each.
#define _GNU_SOURCE
#include <sys/wait.h>

#include "core/tests/c/check.h"
#include "core/tests/c/folder.h"
#include "outcore/ssd.h"

enum { kProcesses = 3 };

static void use_malloc(void) {
  char* const bytes = oc_malloc(1 << 20);
  CHECK(bytes != NULL);
  memset(bytes, 1, 1 << 20);
  oc_free(bytes);
}

static void use_ssd(void) {
  char* const bytes = oc_ssd_malloc("bytes", 1 << 20);
  CHECK(bytes != NULL);
  memset(bytes, 1, 1 << 20);
  CHECK_OK(oc_ssd_free(bytes));
}

// The processes end at the same time, when all have used their memory.
static void each_process_leaves_a_line(const char* folder, const char* name, void (*use)(void)) {
  char path[600], pool[700];
  snprintf(path, sizeof path, "%s/%s.json", folder, name);
  int begin[2];
  CHECK(pipe(begin) == 0);
  for (int i = 0; i < kProcesses; ++i) {
    if (fork() != 0) continue;
    close(begin[1]);
    snprintf(pool, sizeof pool, "versioned:%s/%s%d", folder, name, i);
    CHECK(setenv("OUTCORE_METRICS_AT_EXIT", path, 1) == 0 && setenv("OUTCORE_POOL", pool, 1) == 0);
    use();
    char nothing;
    CHECK(read(begin[0], &nothing, 1) == 0);
    exit(0);
  }
  close(begin[0]);
  close(begin[1]);
  int status;
  for (int i = 0; i < kProcesses; ++i) CHECK(wait(&status) > 0 && status == 0);
  FILE* const file = fopen(path, "r");
  CHECK(file != NULL);
  static char line[1 << 20];
  int lines = 0;
  while (fgets(line, sizeof line, file) != NULL) {
    CHECK(line[0] == '{' && strstr(line, "}\n") != NULL);
    CHECK(strstr(line, "\"budget_bytes\"") != NULL);
    ++lines;
  }
  CHECK(lines == kProcesses);
  fclose(file);
}

int main(void) {
  const char* const folder = make_folder();
  each_process_leaves_a_line(folder, "malloc", use_malloc);
  each_process_leaves_a_line(folder, "ssd", use_ssd);
  return 0;
}
