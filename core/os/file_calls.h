// FileCalls: the system's calls on files, again while signals interrupt them, and until all bytes
// have been transferred. They return 0 or -errno. Any thread, the fault path.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace outcore::os {

// What a call returns that returns -1 with errno for an error: 0 or more, or -errno.
template <typename Call>
auto repeat(const Call& call) -> decltype(call()) {
  while (true) {
    const auto result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return -errno;
  }
}

// -EIO: the file ends before.
int read_all(int fd, uint64_t offset, std::span<std::byte> into);
int write_all(int fd, uint64_t offset, std::span<const std::byte> from);
// The size to which files of this process may grow (RLIMIT_FSIZE); UINT64_MAX: any. Past it the
// kernel refuses a write by a call, of bytes that are there already, too, and sends SIGXFSZ; what
// is written through a mapping of its own it stores.
uint64_t file_size_limit();
// -EFBIG: larger than the process may make files, or than the filesystem takes.
int set_size(int fd, uint64_t size_bytes);
// Gives the range space, and the file at least that size. -EFBIG: as set_size. -ENOTSUP: the
// filesystem cannot.
int allocate_space(int fd, uint64_t offset, uint64_t size_bytes);
// The range reads zero and takes no space. -EOPNOTSUPP: the filesystem cannot.
int punch_hole(int fd, uint64_t offset, uint64_t size_bytes);
// Its first bytes, at most so many; empty: it cannot be read. The descriptor is not a number that
// the program would miss, and no child inherits it. Not the fault path.
std::string read_file(const char* path, size_t bytes_max);
// Whether the path leads to this file, or with AT_SYMLINK_NOFOLLOW in `flags` is one of its names.
bool is_path_of(const struct stat& file, const std::string& path, int flags);
// Makes the name of the file or folder durable, in the folder that it lies in. Not the fault path.
int sync_folder_of(const std::string& path);

}  // namespace outcore::os
