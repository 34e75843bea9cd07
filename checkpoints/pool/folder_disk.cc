#include "checkpoints/pool/folder_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/descriptor_place.h"
#include "core/os/file_calls.h"

namespace outcore::versioned {
PlainFile::~PlainFile() { ::close(fd_); }

int PlainFile::read(uint64_t offset, std::span<std::byte> into) {
  return os::read_all(fd_, offset, into);
}

int PlainFile::write(uint64_t offset, std::span<const std::byte> from) {
  return os::write_all(fd_, offset, from);
}

int PlainFile::sync() { return ::fdatasync(fd_) == 0 ? 0 : -errno; }

int PlainFile::allocate(uint64_t offset, uint64_t size_bytes) {
  const int error = os::allocate_space(fd_, offset, size_bytes);
  if (error != -ENOTSUP) return error;
  const uint64_t end = offset + size_bytes;  // the filesystem cannot reserve
  return end <= PlainFile::size_bytes() ? 0 : os::set_size(fd_, end);
}

void PlainFile::punch(uint64_t offset, uint64_t size_bytes) {
  os::punch_hole(fd_, offset, size_bytes);
}

uint64_t PlainFile::size_bytes() const {
  struct stat about;
  return ::fstat(fd_, &about) == 0 ? static_cast<uint64_t>(about.st_size) : 0;
}

Result<std::shared_ptr<Disk>> FolderDisk::open(const std::string& path, bool may_create) {
  std::shared_ptr<FolderDisk> disk(new FolderDisk);
  if (Status s = disk->open_folder(path, may_create); !s) return s.error();
  return std::shared_ptr<Disk>(std::move(disk));
}

Status FolderDisk::open_folder(const std::string& path, bool may_create) {
  path_ = path;
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  if (may_create) {
    if (::mkdir(path_.c_str(), 0777) == 0) {
      if (const int error = os::sync_folder_of(path_); error != 0)
        return base::system_error(error, "make the folder " + path_ + " durable");
    } else if (errno != EEXIST) {
      return base::system_error(
          errno, "make the folder " + path_,
          errno == ENOENT ? "make the folders above it first" : "name one where you may write");
    }
  }
  folder_fd_ = os::above_standard(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat about;
  if (folder_fd_ < 0 || ::fstat(folder_fd_, &about) != 0) {
    const int error = errno;
    return base::system_error(error, "open the folder " + path_,
                              error == ENOENT    ? "check the path, or create it first"
                              : error == ENOTDIR ? "it is a file: name a folder"
                              : error == EACCES  ? "get permission to read it"
                                                 : "");
  }
  identity_ = std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
  return {};
}

Status FolderDisk::open_folder_of(const FolderDisk& other) {
  const std::string path = "/proc/self/fd/" + std::to_string(other.folder_fd_);
  if (Status s = open_folder(path, false); !s) return s;
  path_ = other.path_;
  return {};
}

Result<std::unique_ptr<File>> FolderDisk::make_heap(int fd, bool, const std::string&) {
  OC_ASSERT(fd >= 0);
  return std::unique_ptr<File>(new PlainFile(fd));
}

Result<std::unique_ptr<File>> FolderDisk::open(const std::string& file, Mode mode, bool is_heap) {
  const int flags = O_CLOEXEC | O_NOCTTY |
                    (mode == Mode::kRead     ? O_RDONLY
                     : mode == Mode::kWrite  ? O_RDWR
                     : mode == Mode::kCreate ? O_RDWR | O_CREAT | O_TRUNC
                                             : O_RDWR | O_CREAT | O_EXCL);
  const int fd = os::repeat(
      [&] { return os::above_standard(::openat(folder_fd_, file.c_str(), flags, 0666)); });
  const std::string path = path_ + "/" + file;
  if (fd < 0)
    return base::system_error(fd, "open " + path,
                              fd == -EACCES   ? "get permission for it"
                              : fd == -ENOENT ? "a file of the pool is missing: restore a copy"
                              : fd == -EROFS  ? "name a folder where you may write"
                              : fd == -EMFILE ? "raise the limit of open files (ulimit -n)"
                                              : "");
  if (is_heap) return make_heap(fd, mode != Mode::kRead, path);
  return std::unique_ptr<File>(new PlainFile(fd));
}

Result<std::vector<std::string>> FolderDisk::list() {
  const int fd = os::above_standard(::openat(folder_fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* const folder = fd < 0 ? nullptr : ::fdopendir(fd);
  if (folder == nullptr) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    return base::system_error(error, "list the folder " + path_);
  }
  std::vector<std::string> names;
  int error = 0;
  while (true) {
    errno = 0;  // nullptr means the end or an error: a folder that cannot be read is not empty
    const dirent* const entry = ::readdir(folder);
    error = errno;
    if (entry == nullptr) break;
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      names.emplace_back(entry->d_name);
  }
  ::closedir(folder);
  if (error != 0) return base::system_error(error, "list the folder " + path_);
  std::sort(names.begin(), names.end());
  return names;
}

int FolderDisk::rename(const std::string& from, const std::string& to) {
  const int error =
      ::renameat2(folder_fd_, from.c_str(), folder_fd_, to.c_str(), RENAME_NOREPLACE) == 0 ? 0
                                                                                           : errno;
  if (error == 0 || (error != EINVAL && error != ENOSYS)) return -error;
  // For filesystems without RENAME_NOREPLACE: only the one writer creates names here.
  if (::faccessat(folder_fd_, to.c_str(), F_OK, 0) == 0) return -EEXIST;
  if (errno != ENOENT) return -errno;
  return ::renameat(folder_fd_, from.c_str(), folder_fd_, to.c_str()) == 0 ? 0 : -errno;
}

int FolderDisk::unlink(const std::string& file) {
  return ::unlinkat(folder_fd_, file.c_str(), 0) == 0 ? 0 : -errno;
}

int FolderDisk::sync_folder() {
  const int error = ::fsync(folder_fd_) == 0 ? 0 : -errno;
  return error == -EINVAL ? 0 : error;  // filesystems whose folders need no sync return EINVAL
}

}  // namespace outcore::versioned
