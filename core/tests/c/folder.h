// Folder: an empty folder for a test, removed with its contents when the program ends. Include it
// after check.h, in a source that defines _GNU_SOURCE.
#pragma once

#include <ftw.h>
#include <unistd.h>

static char folder_path[512];
static pid_t folder_owner;

static int remove_one(const char* path, const struct stat* about, int kind, struct FTW* place) {
  (void)about, (void)kind, (void)place;
  return remove(path);
}
static void remove_folder(void) {
  if (getpid() == folder_owner) nftw(folder_path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char* make_folder(void) {
  const char* parent = getenv("TMPDIR");
  snprintf(folder_path, sizeof folder_path, "%s/outcore_c_XXXXXX", parent ? parent : P_tmpdir);
  CHECK(mkdtemp(folder_path) != NULL);
  folder_owner = getpid();
  atexit(remove_folder);
  return folder_path;
}
