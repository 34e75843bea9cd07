// FileMemory: a file on a DAX mount as the persistent memory that it is, by MAP_SYNC.
//
// The kernel promises that what is mapped so stays in its place of the file after a power failure:
// it makes the metadata durable before a page may be written. So a store that has left the caches
// is durable, without a system call. Any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>

#include "arrays/container/persist.h"

namespace outcore::arrays {

class FileMemory {
 public:
  // Makes a mapping; MAP_FAILED and errno as mmap does. Tests, which have no such memory, put an
  // ordinary mapping in its place.
  using Map = void* (*)(int fd, size_t size_bytes, int protection, off_t offset);
  static void* map_synchronously(int fd, size_t size_bytes, int protection, off_t offset);
  static inline Map map = &map_synchronously;

  // nullptr: its filesystem has no DAX, or this processor's flushes are not known here. The file
  // stays the caller's, open for as long as this lives.
  static std::unique_ptr<FileMemory> of(int fd, bool is_writable);
  ~FileMemory();
  FileMemory(const FileMemory&) = delete;
  FileMemory& operator=(const FileMemory&) = delete;

  // The range, which has space and reads zero, is made ready to be written: else the first store to
  // each page waits for a commit of the filesystem's journal. Durable when the file is synced; a
  // promise of speed alone, so it has no errors.
  void prepare(uint64_t offset, uint64_t size_bytes) const;
  // REQUIRES: the file has the range. 0 or an errno. What is written is durable when this thread
  // has drained; long ranges are copied by several threads, which drain themselves.
  int read(uint64_t offset, std::byte* into, uint64_t size_bytes);
  int write(uint64_t offset, const std::byte* from, uint64_t size_bytes);

 private:
  enum class Way : uint8_t { kRead, kWrite };
  FileMemory(int fd, bool is_writable) : fd_(fd), is_writable_(is_writable) {}
  // What is mapped of the file around the window's number; stays until the end, for what the file
  // grows by, too.
  int window(uint64_t number, std::byte** at);
  int copy(Way way, uint64_t offset, std::byte* bytes, uint64_t size_bytes);
  int copy_by_threads(Way way, uint64_t offset, std::byte* bytes, uint64_t size_bytes);

  const int fd_;
  const bool is_writable_;
  std::shared_mutex mutex_;
  std::map<uint64_t, std::byte*> windows_;  // by number; guarded by mutex_
};

}  // namespace outcore::arrays
