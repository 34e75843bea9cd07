#include "core/os/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/descriptor_place.h"
#include "core/os/file_calls.h"
#include "core/os/parents_descriptors.h"

namespace outcore::os {

Result<int> make_memory_file(uint64_t size_bytes, const char* name, bool is_sealed) {
  OC_CHECK(name != nullptr);
  const int memfd = ParentsDescriptors::open([name, is_sealed] {
    const unsigned sealing = is_sealed ? MFD_ALLOW_SEALING : 0;
    const int fd = above_standard(::memfd_create(name, MFD_CLOEXEC | sealing));
    return fd >= 0 ? fd : -errno;
  });
  if (memfd < 0)
    return base::system_error(memfd, "make frames",
                              memfd == -EMFILE ? "raise the limit of open files (ulimit -n)"
                              : memfd == -EPERM || memfd == -ENOSYS
                                  ? "allow memfd_create in the sandbox's system calls"
                                  : "");
  if (const int error = set_size(memfd, size_bytes); error != 0) {
    ParentsDescriptors::close(memfd);
    return base::system_error(error, "size frames to " + base::format_bytes(size_bytes),
                              "lift the file size limit (ulimit -f)");
  }
  if (is_sealed) ::fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
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

int punch_all(int memfd, std::span<const Piece> pieces) {
  for (size_t i = 0; i < pieces.size();) {
    const uint64_t offset = pieces[i].offset;
    uint64_t end = offset + pieces[i].size_bytes;
    OC_CHECK(end > offset);
    OC_ASSERT(offset % base::kSystemPage == 0);
    for (++i; i < pieces.size() && pieces[i].offset == end; ++i) end += pieces[i].size_bytes;
    if (const int error = punch_hole(memfd, offset, end - offset); error != 0) return error;
  }
  return 0;
}

}  // namespace outcore::os
