#include "arrays/container/file_memory.h"

#include <fcntl.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "arrays/container/workers.h"
#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::arrays {
namespace {

constexpr uint64_t kWindowBytes = uint64_t{1} << 30;  // mapped at a time, at multiples of it
constexpr unsigned kThreadsMax = 4;
constexpr uint64_t kDaxAttribute = 0x200000;  // STATX_ATTR_DAX, since Linux 5.10

void* map_by_kernel(MapSync map_sync, int fd, size_t size_bytes, int protection, off_t offset) {
  const int flags = map_sync == MapSync::kOn ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
  return ::mmap(nullptr, size_bytes, protection, flags, fd, offset);
}

// Of the file itself: it may differ from the mount's other files (mount -o dax=inode).
bool has_dax_by_kernel(int fd) {
  struct statx about {};
  return ::statx(fd, "", AT_EMPTY_PATH, 0, &about) == 0 &&
         (about.stx_attributes & kDaxAttribute) != 0;
}

// The smallest piece that is there, or will be soon.
bool can_provide_by_kernel(int fd) {
  return ::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1) == 0 || errno != EOPNOTSUPP;
}

constexpr FileMemory::Kernel kByKernel = {&map_by_kernel, &has_dax_by_kernel, &::fdatasync,
                                          &can_provide_by_kernel};

}  // namespace

const FileMemory::Kernel FileMemory::kOwn = kByKernel;
constinit FileMemory::Kernel FileMemory::kernel = kByKernel;

std::unique_ptr<FileMemory> FileMemory::of(int fd, bool is_writable, MapSync map_sync) {
  if (best_flush() == Flush::kNone) return nullptr;
  // Only where there is DAX does the kernel grant MAP_SYNC, but it maps every file without.
  if (map_sync == MapSync::kOff && !kernel.has_dax(fd)) return nullptr;
  // Tries with the smallest mapping. It may also lie behind the end of the file.
  void* const tried = kernel.map(map_sync, fd, base::kSystemPage, PROT_READ, 0);
  if (tried == MAP_FAILED) return nullptr;
  ::munmap(tried, base::kSystemPage);
  // ext2 and virtiofs may have DAX and no fallocate: a store into a hole of a full disk is SIGBUS.
  if (is_writable && !kernel.can_provide(fd)) return nullptr;
  return std::unique_ptr<FileMemory>(new FileMemory(fd, is_writable, map_sync));
}

FileMemory::~FileMemory() {
  for (const auto& [number, at] : windows_) ::munmap(at, kWindowBytes);
}

// Touches an ordinary mapping, whose faults do not wait for the journal.
void FileMemory::prepare(uint64_t offset, uint64_t size_bytes) const {
  const uint64_t begin = base::round_down(offset, base::kSystemPage);
  const uint64_t size = base::round_up(offset + size_bytes, base::kSystemPage) - begin;
  void* const made =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(begin));
  if (made == MAP_FAILED) return;
  static_cast<void>(::madvise(made, size, MADV_POPULATE_WRITE));
  ::munmap(made, size);
}

int FileMemory::window(uint64_t number, std::byte** at) {
  {
    const std::shared_lock<std::shared_mutex> guard(mutex_);
    if (const auto known = windows_.find(number); known != windows_.end()) {
      *at = known->second;
      return 0;
    }
  }
  const std::lock_guard<std::shared_mutex> guard(mutex_);
  if (const auto known = windows_.find(number); known != windows_.end()) {
    *at = known->second;
    return 0;
  }
  const int protection = is_writable_ ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const made = kernel.map(map_sync_, fd_, kWindowBytes, protection,
                                static_cast<off_t>(number * kWindowBytes));
  if (made == MAP_FAILED) return errno;
  *at = windows_[number] = static_cast<std::byte*>(made);
  return 0;
}

int FileMemory::copy(Way way, uint64_t offset, std::byte* bytes, uint64_t size_bytes) {
  OC_ASSERT(way == Way::kRead || is_writable_);
  while (size_bytes > 0) {
    const uint64_t in_window = offset % kWindowBytes;
    const uint64_t size = std::min(size_bytes, kWindowBytes - in_window);
    OC_ASSERT(size != 0 && in_window + size <= kWindowBytes);
    std::byte* at = nullptr;
    if (const int error = window(offset / kWindowBytes, &at); error != 0) return error;
    if (way == Way::kRead)
      std::memcpy(bytes, at + in_window, size);
    else
      copy_persistently(at + in_window, bytes, size, best_flush());
    offset += size, bytes += size, size_bytes -= size;
  }
  return 0;
}

int FileMemory::copy_by_threads(Way way, uint64_t offset, std::byte* bytes, uint64_t size_bytes) {
  const uint64_t pieces = (size_bytes + kPieceBytes - 1) / kPieceBytes;
  if (pieces < 2) return copy(way, offset, bytes, size_bytes);
  std::atomic<uint64_t> next{0};
  std::atomic<int> first_error{0};
  const auto work = [&] {
    for (uint64_t i = next++; i < pieces && first_error == 0; i = next++) {
      const uint64_t at = i * kPieceBytes, size = std::min(kPieceBytes, size_bytes - at);
      int none = 0;
      if (const int error = copy(way, offset + at, bytes + at, size); error != 0)
        first_error.compare_exchange_strong(none, error);
    }
    if (way == Way::kWrite) drain();  // no other thread can drain what this one has stored
  };
  std::vector<std::thread> helpers;
  try {
    for (uint64_t t = 1; t < std::min<uint64_t>(pieces, kThreadsMax); ++t)
      helpers.emplace_back(work);
  } catch (const std::exception&) {  // go on with fewer
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  return first_error;
}

int FileMemory::read(uint64_t offset, std::byte* into, uint64_t size_bytes) {
  return copy_by_threads(Way::kRead, offset, into, size_bytes);
}

int FileMemory::write(uint64_t offset, const std::byte* from, uint64_t size_bytes) {
  return copy_by_threads(Way::kWrite, offset, const_cast<std::byte*>(from), size_bytes);
}

}  // namespace outcore::arrays
