// FileMemory: a file on a DAX mount, used as the persistent memory that it is (MAP_SYNC).
//
// The kernel promises that bytes of such a mapping stay in their place of the file after a power
// failure: it makes the metadata durable before a page can be written. So a store instruction is
// durable as soon as the line has left the processor's caches, without a system call. Any thread.
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
  // Makes a mapping. Returns MAP_FAILED and sets errno, as mmap does. Tests on machines without
  // such memory put an ordinary mapping in its place.
  using Map = void* (*)(int fd, size_t size_bytes, int protection, off_t offset);
  static void* map_synchronously(int fd, size_t size_bytes, int protection, off_t offset);
  static inline Map map = &map_synchronously;

  // nullptr: the filesystem has no DAX, or the flush instructions of this processor are not known
  // here. The caller keeps the file open for as long as this object exists.
  static std::unique_ptr<FileMemory> of(int fd, bool is_writable);
  ~FileMemory();
  FileMemory(const FileMemory&) = delete;
  FileMemory& operator=(const FileMemory&) = delete;

  // Prepares the range for writing; REQUIRES: it has space and reads zero. Otherwise the first
  // store to each page would wait for a commit of the filesystem's journal. It only saves time, so
  // it reports no errors. Durable when the file is synced.
  void prepare(uint64_t offset, uint64_t size_bytes) const;
  // 0 or an errno. REQUIRES: the file has the range. What is written is durable when this thread
  // has called drain(); long ranges are copied by several threads, each of which drains itself.
  int read(uint64_t offset, std::byte* into, uint64_t size_bytes);
  int write(uint64_t offset, const std::byte* from, uint64_t size_bytes);

 private:
  enum class Way : uint8_t { kRead, kWrite };
  FileMemory(int fd, bool is_writable) : fd_(fd), is_writable_(is_writable) {}
  // Maps the part of the file with this number; the mapping stays until the end, also for bytes
  // that the file grows by.
  int window(uint64_t number, std::byte** at);
  int copy(Way way, uint64_t offset, std::byte* bytes, uint64_t size_bytes);
  int copy_by_threads(Way way, uint64_t offset, std::byte* bytes, uint64_t size_bytes);

  const int fd_;
  const bool is_writable_;
  std::shared_mutex mutex_;
  std::map<uint64_t, std::byte*> windows_;  // by number; guarded by mutex_
};

}  // namespace outcore::arrays
