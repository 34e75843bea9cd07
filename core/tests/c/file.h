// File: a file of words for a test, removed when the program ends. Include it after check.h, in a
// source that defines _GNU_SOURCE.
#pragma once

#include <fcntl.h>
#include <unistd.h>

static char file_path[512];

static void remove_file(void) { unlink(file_path); }

// Makes a file of `count` words, word i being word_of(i), and returns its path.
static inline const char* make_file(uint64_t count) {
  const char* folder = getenv("TMPDIR");
  snprintf(file_path, sizeof file_path, "%s/outcore_c_XXXXXX", folder ? folder : P_tmpdir);
  const int fd = mkstemp(file_path);
  CHECK(fd >= 0);
  atexit(remove_file);
  FILE* file = fdopen(fd, "w");
  CHECK(file != NULL);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t word = word_of(i);
    CHECK(fwrite(&word, sizeof word, 1, file) == 1);
  }
  CHECK(fclose(file) == 0);
  return file_path;
}

// Word i of the file, read by a system call.
static inline uint64_t word_in_file(uint64_t i) {
  uint64_t word = 0;
  const int fd = open(file_path, O_RDONLY);
  CHECK(fd >= 0);
  CHECK(pread(fd, &word, sizeof word, (off_t)(i * sizeof word)) == (ssize_t)sizeof word);
  close(fd);
  return word;
}
