#include "core/runtime/profile_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/descriptor_place.h"
#include "core/os/file_calls.h"
#include "core/os/file_lock.h"
#include "core/os/wait.h"

namespace outcore::runtime {
namespace {

using prefetch::TouchProfile;

constexpr uint64_t kProfileLockNsMax = 5'000'000'000;

const char* remedy_for_profile(int error) {
  switch (error < 0 ? -error : error) {
    case ENOENT:
    case ENOTDIR:
      return "make its folder first";
    case EACCES:
    case EPERM:
    case EROFS:
      return "name a file in a folder that you may write to";
    case ENOSPC:
    case EDQUOT:
      return "free some space, or name a file elsewhere";
    case EBUSY:
      return "it cannot be replaced, as where it is mounted by itself: name a file in a folder, or "
             "mount its folder";
    case EEXIST:
      return "beside it is .NAME.outcore-new, which is not an unfinished profile: move that away";
    case ENAMETOOLONG:
      return "give it a shorter name";
    default:
      return "";
  }
}

Error profile_error(const char* attempted, const std::string& path, int error) {
  return base::system_error(error, std::string(attempted) + path, remedy_for_profile(error));
}

Result<TouchProfile> read_from(int fd, const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return Error{EINVAL, "learn from " + path + ": " + why};
  };
  struct stat about;
  if (::fstat(fd, &about) != 0) return profile_error("learn from ", path, errno);
  if (!S_ISREG(about.st_mode)) return refuse("it is not a regular file: name one");
  if (about.st_size > static_cast<off_t>(TouchProfile::kBytesMax))
    return refuse("it is not a profile, which has 1 MiB at most: name another file");
  std::string bytes(static_cast<size_t>(about.st_size), '\0');
  if (const int error = os::read_all(fd, 0, std::as_writable_bytes(std::span(bytes))); error != 0)
    return profile_error("learn from ", path, error);
  Result<TouchProfile> profile = TouchProfile::decode(bytes);
  if (!profile) return refuse(profile.message());
  return profile;
}

// Who has locked the file has it by its name, and nobody else replaces it meanwhile.
bool is_named_so(int fd, const std::string& path) {
  struct stat open;
  return ::fstat(fd, &open) == 0 && os::is_path_of(open, path, 0);
}

// A descriptor of os::open_to_lock, or -errno. `is_new`: the file was not there before.
int open_locked_profile(const std::string& path, bool* is_new) {
  constexpr int kFlags = O_RDWR | O_NONBLOCK | O_NOCTTY;
  const uint64_t start_ns = os::now_ns();
  for (;;) {
    int fd = os::open_to_lock(AT_FDCWD, path.c_str(), kFlags);
    *is_new = fd == -ENOENT;
    if (*is_new) fd = os::open_to_lock(AT_FDCWD, path.c_str(), kFlags | O_CREAT, 0666);
    if (fd < 0) return fd;
    int error = os::lock_file(fd, true);
    if (error == 0 && is_named_so(fd, path)) return fd;
    os::close_locked(fd);
    if (error == 0) error = -EAGAIN;  // it was replaced while this process waited
    if (error != -EAGAIN || os::now_ns() - start_ns > kProfileLockNsMax) return error;
    std::atomic<uint32_t> nobody_wakes{0};
    os::wait(&nobody_wakes, 0, 2'000'000);
  }
}

// The place of the file itself, which a link may name. Of one that was removed meanwhile: the path.
std::string place_of(int fd, const std::string& path) {
  char place[PATH_MAX];
  const ssize_t bytes =
      ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), place, sizeof place);
  struct stat about;
  const bool is_known = bytes > 0 && bytes < static_cast<ssize_t>(sizeof place) &&
                        place[0] == '/' && ::fstat(fd, &about) == 0 && about.st_nlink != 0;
  return is_known ? std::string(place, static_cast<size_t>(bytes)) : path;
}

// Of a process that died while it replaced a profile. REQUIRES: that profile is locked. 0 or
// -errno; EEXIST: it is something else, and stays.
int remove_leftover(const std::string& fresh) {
  const os::Descriptor file(
      ::open(fresh.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) return errno == ENOENT ? 0 : -EEXIST;
  struct stat about;
  if (::fstat(file.get(), &about) != 0) return -errno;
  if (!S_ISREG(about.st_mode)) return -EEXIST;
  if (about.st_size != 0) {
    std::string magic(TouchProfile::kMagic.size(), '\0');
    const int error = os::read_all(file.get(), 0, std::as_writable_bytes(std::span(magic)));
    if (error != 0 || magic != TouchProfile::kMagic) return -EEXIST;
  }
  return ::unlink(fresh.c_str()) == 0 ? 0 : -errno;
}

// REQUIRES: the file of `fd` is locked. 0 or -errno.
int replace_profile(int fd, const std::string& path, const std::string& bytes) {
  const std::string place = place_of(fd, path);
  const size_t name_at = place.rfind('/') + 1;  // 0, without one
  const std::string fresh = place.substr(0, name_at) + "." + place.substr(name_at) + ".outcore-new";
  struct stat about;
  if (::fstat(fd, &about) != 0) return -errno;
  if (const int error = remove_leftover(fresh); error != 0) return error;
  const os::Descriptor file(
      ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) return -errno;
  int error = os::write_all(file.get(), 0, std::as_bytes(std::span(bytes)));
  // Some file systems (vfat, CIFS) have no such modes.
  if (error == 0 && ::fchmod(file.get(), about.st_mode & 0777) != 0 && errno != EPERM)
    error = -errno;
  if (error == 0 && ::rename(fresh.c_str(), place.c_str()) != 0) error = -errno;
  if (error != 0) ::unlink(fresh.c_str());
  return error;
}

}  // namespace

Result<TouchProfile> read_profile(const std::string& path) {
  OC_CHECK(!path.empty());
  const os::Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0 && errno == ENOENT) return TouchProfile();
  if (fd.get() < 0) return profile_error("learn from ", path, errno);
  return read_from(fd.get(), path);
}

Status check_place_of_profile(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const bool is_there = ::access(path.c_str(), F_OK) == 0;
  // One that can be read serves, also if it cannot be kept.
  if (::access(is_there ? path.c_str() : folder.c_str(), is_there ? R_OK : W_OK | X_OK) == 0)
    return {};
  return profile_error("keep what was learnt in ", path, errno);
}

Status add_to_profile(const std::string& path, std::vector<prefetch::LearntFile> learnt) {
  OC_CHECK(!path.empty());
  if (learnt.empty()) return {};
  bool is_new = false;
  const int fd = open_locked_profile(path, &is_new);
  if (fd == -EAGAIN)
    return Error{EAGAIN, "keep what was learnt in " + path + ": others have it locked: wait for " +
                             "them, or name another file"};
  if (fd < 0) return profile_error("keep what was learnt in ", path, fd);
  Result<TouchProfile> profile = read_from(fd, path);
  Status status = profile.status();
  if (status.ok()) {
    profile->add(std::move(learnt));
    const int error = replace_profile(fd, path, profile->encode());
    OC_ASSERT(error <= 0);
    if (error != 0) status = profile_error("keep what was learnt in ", path, error);
  }
  struct stat about;
  // Empty, it would be of no use. Whoever waits for it sees that it has no name any more.
  if (!status.ok() && is_new && ::fstat(fd, &about) == 0 && about.st_size == 0)
    ::unlink(place_of(fd, path).c_str());
  os::close_locked(fd);
  return status;
}

}  // namespace outcore::runtime
