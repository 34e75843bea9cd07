// FileMemory: a file on a DAX mount, used as the persistent memory that it is, with MAP_SYNC or
// without.
//
// With MAP_SYNC the kernel promises that bytes of the mapping stay in their place of the file after
// a power failure: it makes the metadata durable before a page can be written. So a store
// instruction is durable as soon as the line has left the processor's caches, without a system
// call. Without it the bytes are in the memory as soon, but the filesystem may not know yet whose
// they are: they are durable when the file has been synced. Any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>

#include "arrays/container/persist.h"

namespace outcore::arrays {

enum class MapSync : uint8_t { kOn, kOff };

class FileMemory {
 public:
  // What the kernel does and knows. Tests on machines without such memory put functions in their
  // place that take any file for it, and that see what is made durable when.
  struct Kernel {
    // Makes a mapping. Returns MAP_FAILED and sets errno, as mmap does.
    void* (*map)(MapSync map_sync, int fd, size_t size_bytes, int protection, off_t offset);
    bool (*has_dax)(int fd);
    int (*sync)(int fd);  // as fdatasync
    // Whether space can be provided (fallocate) before it is stored into.
    bool (*can_provide)(int fd);
  };
  static const Kernel kOwn;
  static Kernel kernel;

  // nullptr: the filesystem has no DAX (with MapSync::kOn: or none for which the kernel grants
  // MAP_SYNC), or a writable file gets no space ahead there, or the flush instructions of this
  // processor are not known here. The caller keeps the file open for as long as this object exists.
  static std::unique_ptr<FileMemory> of(int fd, bool is_writable, MapSync map_sync);
  ~FileMemory();
  FileMemory(const FileMemory&) = delete;
  FileMemory& operator=(const FileMemory&) = delete;

  // Whether changes of the file's space and length must be synced at once: with MAP_SYNC a later
  // sync of the container does not sync the file.
  bool is_synchronous() const { return map_sync_ == MapSync::kOn; }
  // Prepares the range for writing; REQUIRES: it has space and reads zero. Otherwise the first
  // store to each page would wait for a commit of the filesystem's journal. It only saves time, so
  // it reports no errors. Durable when the file is synced.
  void prepare(uint64_t offset, uint64_t size_bytes) const;
  // 0 or an errno. REQUIRES: the file has the range. What is written is in the memory when this
  // thread has called drain(); long ranges are copied by several threads, each of which drains
  // itself.
  int read(uint64_t offset, std::byte* into, uint64_t size_bytes);
  int write(uint64_t offset, const std::byte* from, uint64_t size_bytes);

 private:
  enum class Way : uint8_t { kRead, kWrite };
  FileMemory(int fd, bool is_writable, MapSync map_sync)
      : fd_(fd), is_writable_(is_writable), map_sync_(map_sync) {}
  // Maps the part of the file with this number; the mapping stays until the end, also for bytes
  // that the file grows by.
  int window(uint64_t number, std::byte** at);
  int copy(Way way, uint64_t offset, std::byte* bytes, uint64_t size_bytes);
  int copy_by_threads(Way way, uint64_t offset, std::byte* bytes, uint64_t size_bytes);

  const int fd_;
  const bool is_writable_;
  const MapSync map_sync_;
  std::shared_mutex mutex_;
  std::map<uint64_t, std::byte*> windows_;  // by number; guarded by mutex_
};

}  // namespace outcore::arrays
