#include "cli/export_target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

#include "cli/text.h"

namespace outcore::cli {
namespace {

namespace fs = std::filesystem;

void remove(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

}  // namespace

bool exists(const std::string& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0;
}

ExportTarget::ExportTarget(std::string path) : path_(std::move(path)) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  const size_t slash = path_.rfind('/') + 1;
  // No number of a process: each container has a process 1, and a filesystem several hosts.
  std::random_device random;
  do {
    temporary_ = path_.substr(0, slash) + "." + path_.substr(slash) + "." +
                 format("%08x", static_cast<unsigned>(random())) + ".part";
  } while (exists(temporary_));
}

ExportTarget::~ExportTarget() { remove(temporary_); }

std::string ExportTarget::folder() const {
  const std::string folder = path_.substr(0, path_.rfind('/') + 1);
  return folder.empty() ? "." : folder;
}

Status ExportTarget::check_folder() const {
  if (::access(folder().c_str(), W_OK | X_OK) == 0) return {};
  return failure(errno, "write " + path_,
                 errno == ENOENT ? "make the folder " + folder() + " first"
                                 : "name a folder in which you may write");
}

Error ExportTarget::explain(const Error& error) const {
  constexpr uint64_t kFullBytes = 64 << 10;  // none of the formats can work with less
  for (const int full : {ENOSPC, EDQUOT})    // the file may be gone, and its space be free again
    if (error.code == full || error.message.find(::strerrordesc_np(full)) != std::string::npos)
      return failure(full, "write " + path_);
  struct statvfs about {};
  if (::statvfs(folder().c_str(), &about) == 0 && about.f_blocks != 0 &&
      uint64_t{about.f_bavail} * about.f_frsize < kFullBytes)
    return failure(ENOSPC, "write " + path_);
  Error told = error;
  for (size_t at = 0; (at = told.message.find(temporary_, at)) != std::string::npos;)
    told.message.replace(at, temporary_.size(), path_);
  return told;
}

Status ExportTarget::finish(bool may_replace) {
  if (Status s = sync(); !s) return s;
  if (Status s = move_there(may_replace); !s) return s;
  return sync_name();
}

Status ExportTarget::move_there(bool may_replace) {
  const auto move = [this](unsigned flags) {
    return ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), flags) == 0;
  };
  if (move(RENAME_NOREPLACE)) return {};
  const int why = errno;
  if (why == EEXIST && !may_replace)
    return Error{EEXIST, path_ + " is there by now: add --replace"};
  if (exists(path_) && !is_ours_to_replace())
    return Error{EEXIST,
                 path_ + " is a folder that was not exported: remove it, or take another name"};
  if (why == EEXIST && move(RENAME_EXCHANGE)) return {};  // what was there goes with us
  std::error_code error;
  if (may_replace && fs::is_directory(path_, error)) remove(path_);
  if ((may_replace || !exists(path_)) && move(0)) return {};
  return failure(errno, "write " + path_);
}

// True for files, for folders that an export has made, and for empty folders.
bool ExportTarget::is_ours_to_replace() const {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(path_, error))) return true;
  if (fs::is_empty(path_, error)) return true;
  return fs::is_directory(temporary_, error) &&
         (exists(path_ + "/.zgroup") || exists(path_ + "/.zarray") || exists(path_ + "/zarr.json"));
}

// The folder's; who may write into it but not list it syncs the whole filesystem.
Status ExportTarget::sync_name() const {
  int fd = ::open(folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool is_folder = fd >= 0 || errno != EACCES;
  if (!is_folder) fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  // Filesystems whose folders need no sync return EINVAL.
  const bool is_good =
      fd >= 0 && ((is_folder ? ::fsync(fd) : ::syncfs(fd)) == 0 || errno == EINVAL);
  const int why = errno;
  if (fd >= 0) ::close(fd);
  return is_good ? Status() : failure(why, "make the name " + path_ + " durable");
}

Status ExportTarget::sync() const {
  const int fd = ::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failure(errno, "write " + path_);
  std::error_code error;
  const bool is_folder = fs::is_directory(temporary_, error);
  const bool is_good = (is_folder ? ::syncfs(fd) : ::fsync(fd)) == 0;
  const int why = errno;
  ::close(fd);
  return is_good ? Status() : failure(why, "write " + path_);
}

}  // namespace outcore::cli
