#include "umap/stores/descriptor_store.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/store/file_store.h"
#include "umap/stores/tail_store.h"

namespace outcore::umapped {
namespace {

std::string identity_of(const struct stat& about) {
  return std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
}

// The path that the file has now; for one that has none (any more), a path by which this process
// can open it.
std::string path_of(int fd, const struct stat& about) {
  std::string link = "/proc/self/fd/" + std::to_string(fd);
  char path[PATH_MAX];
  const ssize_t bytes = ::readlink(link.c_str(), path, sizeof path);
  if (bytes <= 0 || bytes == sizeof path || path[0] != '/') return link;
  std::string named(path, static_cast<size_t>(bytes));
  struct stat there;
  if (::stat(named.c_str(), &there) != 0 || identity_of(there) != identity_of(about)) return link;
  return named;
}

}  // namespace

Result<std::shared_ptr<Store>> open_descriptor(int fd, bool is_writable, uint64_t end_bytes) {
  const std::string attempted = "map descriptor " + std::to_string(fd);
  const int flags = ::fcntl(fd, F_GETFL);
  struct stat about;
  if (flags < 0 || ::fstat(fd, &about) != 0) return base::system_error(errno, attempted);
  if (!S_ISREG(about.st_mode) && !S_ISBLK(about.st_mode))
    return Error{ENODEV, attempted + ": it is neither a regular file nor a block device"};
  const int mode = flags & O_ACCMODE;
  if (mode == O_WRONLY)
    return Error{EACCES, attempted + ": it is open for writing alone; open it with O_RDWR"};
  if (is_writable && mode != O_RDWR)
    return Error{EACCES, attempted +
                             ": it is open for reading alone; open it with O_RDWR, or leave out "
                             "PROT_WRITE"};
  store::FileStoreOptions options;
  options.path = path_of(fd, about);
  options.open.is_writable = is_writable;
  Result<std::shared_ptr<Store>> opened = store::FileStore::open(options);
  if (!opened) return opened.error();
  // Between the look at its name and the open it may have been replaced.
  if (S_ISREG(about.st_mode) && opened.value()->identity() != identity_of(about))
    return Error{EAGAIN, attempted + ": " + options.path + " was replaced meanwhile; try again"};
  if (opened.value()->size_bytes() >= end_bytes) return opened;
  auto file = std::static_pointer_cast<store::FileStore>(std::move(opened).value());
  return std::shared_ptr<Store>(
      std::make_shared<TailStore>(std::move(file), is_writable, end_bytes));
}

}  // namespace outcore::umapped
