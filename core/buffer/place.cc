#include "core/buffer/place.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/buffer/buffer_file.h"
#include "core/os/file_lock.h"

namespace outcore::buffer {
namespace {

constexpr std::string_view kSuffix = ".outcore-buffer";
constexpr const char* kRemedy = "name another folder by OUTCORE_BUFFER_DIR";

std::string value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

std::string place() {
  if (const std::string given = value_of("OUTCORE_BUFFER_DIR"); !given.empty()) return given;
  if (const std::string run = value_of("XDG_RUNTIME_DIR"); run.starts_with('/'))
    return run + "/outcore";
  const std::string temporary = value_of("TMPDIR");
  return (temporary.starts_with('/') ? temporary : "/tmp") + "/outcore-" +
         std::to_string(::geteuid());
}

}  // namespace

Status check_name(const std::string& name) {
  constexpr size_t kLongest = 100;
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
  if (name == "none")
    return Error{EINVAL, "buffer 'none': that says that nothing is shared: choose another name"};
  const bool is_named = !name.empty() && name.front() != '.' && name.front() != '-';
  if (is_named && name.size() <= kLongest && is_plain) return {};
  return Error{EINVAL, "buffer '" + name +
                           "': a name has letters, digits, '.', '_' and '-', 100 at most, and "
                           "neither '.' nor '-' in front"};
}

namespace {

// The folder is there.
Status check_rights(const std::string& path) {
  struct stat about;
  if (::lstat(path.c_str(), &about) != 0)
    return base::system_error(errno, "look at the folder of buffers, " + path, kRemedy);
  if (!S_ISDIR(about.st_mode)) return Error{ENOTDIR, path + " is no folder: " + kRemedy};
  if (about.st_uid != ::geteuid())
    return Error{EPERM, "the folder of buffers, " + path + ", is another user's: " + kRemedy};
  if ((about.st_mode & 077) != 0)
    return Error{EPERM, "the folder of buffers, " + path +
                            ", is open to other users: make it yours alone (chmod 700), or " +
                            kRemedy};
  return {};
}

}  // namespace

Result<std::string> folder() {
  std::string path = place();
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return base::system_error(errno, "make the folder of buffers, " + path, kRemedy);
  if (Status s = check_rights(path); !s) return s.error();
  return path;
}

Status check_folder() {
  const std::string path = place();
  if (::access(path.c_str(), F_OK) == 0) return check_rights(path);
  const size_t last = path.find_last_not_of('/');
  const std::string above = path.substr(0, path.rfind('/', last) + 1);
  if (::access(above.empty() ? "." : above.c_str(), W_OK | X_OK) == 0) return {};
  return base::system_error(errno, "make the folder of buffers, " + path, kRemedy);
}

std::string path_of(const std::string& name) { return file_of(place(), name); }

std::string file_of(const std::string& folder, const std::string& name) {
  return folder + "/" + name + std::string(kSuffix);
}

Result<std::vector<std::string>> names_in(const std::string& folder) {
  DIR* const open = ::opendir(folder.c_str());
  if (open == nullptr) return base::system_error(errno, "list buffers in " + folder);
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(open)) {
    std::string name = entry->d_name;
    if (!name.ends_with(kSuffix)) continue;
    name.resize(name.size() - kSuffix.size());
    if (check_name(name).ok()) names.push_back(std::move(name));
  }
  ::closedir(open);
  std::sort(names.begin(), names.end());
  return names;
}

void remove_if_left(const std::string& path) {
  const int fd = os::open_to_lock(AT_FDCWD, path.c_str(), O_RDWR | O_NOFOLLOW);
  if (fd < 0) return;
  if (os::lock_bytes(fd, F_WRLCK, kMaking, 1) == 0) remove_if_empty(fd, path);
  os::close_locked(fd);
}

void remove_if_empty(int fd, const std::string& path) {
  struct flock found;
  if (os::find_lock(fd, kSlots, kMembersMax, &found) != 0 || found.l_type != F_UNLCK) return;
  // Nothing that is not a buffer's, nor what somebody has made in its place.
  Header header;
  struct stat about, named;
  if (::fstat(fd, &about) != 0 || ::lstat(path.c_str(), &named) != 0 ||
      about.st_ino != named.st_ino || about.st_dev != named.st_dev || about.st_nlink != 1 ||
      about.st_size > static_cast<off_t>(slot_offset(kMembersMax)) ||
      (about.st_size != 0 && (read_from(fd, 0, &header) != 0 || !header.is_a_buffers())))
    return;
  if (::unlink(path.c_str()) != 0 || !value_of("OUTCORE_BUFFER_DIR").empty()) return;
  static_cast<void>(::rmdir(path.substr(0, path.rfind('/')).c_str()));  // if it was the last
}

}  // namespace outcore::buffer
