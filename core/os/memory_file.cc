#include "core/os/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/descriptor_place.h"
#include "core/os/parents_descriptors.h"

namespace outcore::os {

Result<int> make_memory_file(uint64_t size_bytes) {
  const int memfd = above_standard(::memfd_create("outcore-frames", MFD_CLOEXEC));
  if (memfd < 0)
    return base::system_error(errno, "make frames", "raise the limit of open files (ulimit -n)");
  if (::ftruncate(memfd, static_cast<off_t>(size_bytes)) != 0) {
    const int error = errno;
    ::close(memfd);
    return base::system_error(error, "size frames to " + base::format_bytes(size_bytes),
                              "lift the file size limit (ulimit -f)");
  }
  ParentsDescriptors::add(memfd);
  return memfd;
}

int map_memory_file(int memfd, const Piece& piece) {
  OC_CHECK(memfd >= 0);
  OC_CHECK(piece.size_bytes != 0);
  OC_CHECK(piece.offset % base::kSystemPage == 0);
  OC_CHECK(reinterpret_cast<uintptr_t>(piece.address) % base::kSystemPage == 0);
  void* p = ::mmap(piece.address, piece.size_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memfd,
                   static_cast<off_t>(piece.offset));
  if (p == MAP_FAILED) return -errno;
  ::munlock(p, piece.size_bytes);  // after mlockall(MCL_FUTURE) no page could be evicted
  ::madvise(p, piece.size_bytes, MADV_NOHUGEPAGE);
  ::madvise(p, piece.size_bytes, MADV_DONTDUMP);
  return ::madvise(p, piece.size_bytes, MADV_DONTFORK) == 0 ? 0 : -errno;
}

int write_memory_file(int memfd, uint64_t offset, std::span<const std::byte> bytes) {
  OC_ASSERT(memfd >= 0);
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(memfd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      return -errno;
    }
    offset += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return 0;
}

int read_memory_file(int memfd, uint64_t offset, std::span<std::byte> into) {
  OC_ASSERT(memfd >= 0);
  while (!into.empty()) {
    const ssize_t n = ::pread(memfd, into.data(), into.size(), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      return -errno;
    }
    if (n == 0) return -EIO;
    offset += static_cast<uint64_t>(n);
    into = into.subspan(static_cast<size_t>(n));
  }
  return 0;
}

int punch_all(int memfd, std::span<const Piece> pieces) {
  for (size_t i = 0; i < pieces.size();) {
    const uint64_t offset = pieces[i].offset;
    uint64_t end = offset + pieces[i].size_bytes;
    OC_CHECK(end > offset);
    OC_ASSERT(offset % base::kSystemPage == 0);
    for (++i; i < pieces.size() && pieces[i].offset == end; ++i) end += pieces[i].size_bytes;
    while (::fallocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                       static_cast<off_t>(offset), static_cast<off_t>(end - offset)) != 0)
      if (errno != EINTR) return -errno;
  }
  return 0;
}

}  // namespace outcore::os
