#include "core/os/file_calls.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/os/descriptor_place.h"
#include "core/os/wait.h"

namespace outcore::os {
namespace {

// Whether the file may be made so large: else the kernel would end the process by SIGXFSZ.
bool may_have_size(int fd, uint64_t size_bytes) {
  struct stat about {};
  if (size_bytes <= file_size_limit()) return true;
  return ::fstat(fd, &about) == 0 && size_bytes <= static_cast<uint64_t>(about.st_size);
}

}  // namespace

uint64_t file_size_limit() {
  struct rlimit most {};
  if (::getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return most.rlim_cur;
}

int read_all(int fd, uint64_t offset, std::span<std::byte> into) {
  OC_ASSERT(fd >= 0);
  interleave();
  while (!into.empty()) {
    const ssize_t got =
        repeat([&] { return ::pread(fd, into.data(), into.size(), static_cast<off_t>(offset)); });
    if (got <= 0) return got == 0 ? -EIO : static_cast<int>(got);
    offset += static_cast<uint64_t>(got);
    into = into.subspan(static_cast<size_t>(got));
  }
  return 0;
}

int write_all(int fd, uint64_t offset, std::span<const std::byte> from) {
  OC_ASSERT(fd >= 0);
  interleave();
  while (!from.empty()) {
    const ssize_t put =
        repeat([&] { return ::pwrite(fd, from.data(), from.size(), static_cast<off_t>(offset)); });
    if (put <= 0) return put == 0 ? -EIO : static_cast<int>(put);
    offset += static_cast<uint64_t>(put);
    from = from.subspan(static_cast<size_t>(put));
  }
  return 0;
}

int set_size(int fd, uint64_t size_bytes) {
  if (!may_have_size(fd, size_bytes)) return -EFBIG;
  return repeat([&] { return ::ftruncate(fd, static_cast<off_t>(size_bytes)); });
}

int allocate_space(int fd, uint64_t offset, uint64_t size_bytes) {
  if (!may_have_size(fd, offset + size_bytes)) return -EFBIG;
  const int error = repeat([&] {
    return ::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(size_bytes));
  });
  return error == -EOPNOTSUPP || error == -ENOSYS ? -ENOTSUP : error;
}

int punch_hole(int fd, uint64_t offset, uint64_t size_bytes) {
  interleave();
  return repeat([&] {
    return ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(size_bytes));
  });
}

std::string read_file(const char* path, size_t bytes_max) {
  const Descriptor fd(::open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY));
  std::string text(bytes_max, '\0');
  size_t size = 0;
  while (fd.get() >= 0 && size < bytes_max) {
    const ssize_t n =
        repeat([&] { return ::read(fd.get(), text.data() + size, bytes_max - size); });
    if (n <= 0) break;
    size += static_cast<size_t>(n);
  }
  text.resize(size);
  return text;
}

bool is_path_of(const struct stat& file, const std::string& path, int flags) {
  struct stat found;
  return ::fstatat(AT_FDCWD, path.c_str(), &found, flags) == 0 && found.st_ino == file.st_ino &&
         found.st_dev == file.st_dev;
}

int sync_folder_of(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  const size_t slash = end == std::string::npos ? end : path.rfind('/', end);
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Filesystems whose folders need no sync return EINVAL.
  return fd.get() >= 0 && (::fsync(fd.get()) == 0 || errno == EINVAL) ? 0 : -errno;
}

}  // namespace outcore::os
