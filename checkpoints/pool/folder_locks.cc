// FolderDisk's locks: who has a pool open. See folder_disk.h.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "checkpoints/pool/folder_disk.h"
#include "core/base/error.h"
#include "core/os/at_fork.h"
#include "core/os/file_lock.h"

namespace outcore::versioned {
namespace {

std::string comm_of(const std::string& process) {
  std::string name;
  std::getline(std::ifstream("/proc/" + process + "/comm"), name);
  return "process " + process + (name.empty() ? "" : " (" + name + ")");
}

// "lock: 1: OFDLCK ADVISORY READ -1 fe:00:1234 7 7" in /proc/PID/fdinfo/FD.
bool has_lock(const std::string& fdinfo, const std::string& inode, uint64_t byte) {
  std::ifstream in(fdinfo);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("lock:") || line.find("OFDLCK") == std::string::npos) continue;
    const size_t at = line.find(":" + inode + " ");
    if (at == std::string::npos) continue;
    char* end = nullptr;
    const uint64_t first = std::strtoull(line.c_str() + at + inode.size() + 2, &end, 10);
    const bool is_open = std::strstr(end, "EOF") != nullptr;
    const uint64_t last = is_open ? UINT64_MAX : std::strtoull(end, nullptr, 10);
    if (first <= byte && byte <= last) return true;
  }
  return false;
}

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  DIR* const folder = ::opendir(path.c_str());
  if (folder == nullptr) return names;
  while (const dirent* const entry = ::readdir(folder))
    if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') names.emplace_back(entry->d_name);
  ::closedir(folder);
  return names;
}

}  // namespace

FolderDisk::~FolderDisk() {
  const bool has_locks = is_of_this_process();
  for (const int fd : {lock_fd_, readers_fd_})
    if (fd >= 0 && has_locks) os::close_locked(fd);  // a forked child has closed them
  if (folder_fd_ >= 0) ::close(folder_fd_);
}

bool FolderDisk::is_of_this_process() const {
  return generation_ == 0 || generation_ == os::process_generation();
}

Status FolderDisk::lock_writer() {
  const std::string attempted = "open " + path_ + " to write";
  lock_fd_ = os::open_to_lock(folder_fd_, "lock", O_RDWR | O_CREAT, 0666);
  if (lock_fd_ < 0)
    return base::system_error(-lock_fd_, attempted,
                              lock_fd_ == -EMFILE ? "raise the limit of open files (ulimit -n)"
                              : lock_fd_ == -EROFS
                                  ? "name a folder where you may write; checkpoints "
                                    "can be read without"
                                  : "get write permission; checkpoints can be read "
                                    "without");
  generation_ = os::process_generation();
  if (const int error = os::lock_bytes(lock_fd_, F_WRLCK, 0, 0); error != 0) {
    if (error != -EAGAIN) return base::system_error(-error, attempted + ": lock");
    char who[128] = {};
    const ssize_t got = ::pread(lock_fd_, who, sizeof who - 1, 0);
    const std::string text = got > 0 ? std::string(who, std::strcspn(who, "\n")) : "another";
    return Error{EBUSY, attempted + ": " + text +
                            " writes it: end that first; checkpoints can be read meanwhile"};
  }
  char host[64] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string who = comm_of(std::to_string(::getpid())) + " on " + host + "\n";
  // This text is only for messages: the lock is valid without it.
  if (::ftruncate(lock_fd_, 0) == 0)
    if (::pwrite(lock_fd_, who.data(), who.size(), 0) < 0) errno = 0;
  const int error = open_readers(true);
  return error == 0 ? Status() : base::system_error(error, attempted + ": its file of readers");
}

int FolderDisk::open_readers(bool may_create) {
  if (readers_fd_ >= 0) return 0;
  readers_fd_ =
      os::open_to_lock(folder_fd_, "readers", may_create ? O_RDWR | O_CREAT : O_RDONLY, 0666);
  if (readers_fd_ < 0) return readers_fd_;
  generation_ = os::process_generation();
  return 0;
}

int FolderDisk::lock_byte(int type, uint32_t commit) {
  return os::lock_bytes(readers_fd_, type, commit, 1);
}

int FolderDisk::hold(uint32_t commit) {
  const int error = open_readers(false);
  if (error == -ENOENT && tolerates_copies_) {
    is_unheld_ = true;
    return 0;
  }
  return error != 0 ? error : lock_byte(F_RDLCK, commit);
}

void FolderDisk::unhold(uint32_t commit) {
  if (readers_fd_ >= 0 && is_of_this_process()) lock_byte(F_UNLCK, commit);
}

// Who opens the pool to write makes the file of readers.
bool FolderDisk::has_got_writer() { return is_unheld_ && open_readers(false) != -ENOENT; }

bool FolderDisk::claim(uint32_t commit) { return lock_byte(F_WRLCK, commit) == 0; }

void FolderDisk::unclaim(uint32_t commit) { lock_byte(F_UNLCK, commit); }

std::vector<uint32_t> FolderDisk::held_by_others() {
  std::vector<uint32_t> commits;
  for (uint64_t from = 0; from <= UINT32_MAX;) {
    struct flock lock {};
    if (os::find_lock(readers_fd_, from, 0, &lock) != 0 || lock.l_type == F_UNLCK) break;
    // The lock that the kernel reports need not be the first: the range before it is asked for
    // again.
    const auto found = static_cast<uint64_t>(lock.l_start);
    for (uint64_t end = found; end > from;) {
      struct flock before {};
      if (os::find_lock(readers_fd_, from, end - from, &before) != 0 || before.l_type == F_UNLCK)
        break;
      end = static_cast<uint64_t>(before.l_start);
      lock = before;
    }
    for (int64_t i = 0; i < std::max<int64_t>(lock.l_len, 1); ++i)
      commits.push_back(static_cast<uint32_t>(lock.l_start + i));
    from = static_cast<uint64_t>(lock.l_start + std::max<int64_t>(lock.l_len, 1));
  }
  return commits;
}

std::string FolderDisk::who_holds(uint32_t commit) {
  struct stat about;
  const std::string unknown = "another process";
  if (readers_fd_ < 0 || ::fstat(readers_fd_, &about) != 0) return unknown;
  const std::string inode = std::to_string(about.st_ino);
  for (const std::string& process : names_in("/proc"))
    for (const std::string& fd : names_in("/proc/" + process + "/fdinfo"))
      if (has_lock("/proc/" + process + "/fdinfo/" + fd, inode, commit)) return comm_of(process);
  return unknown;
}

}  // namespace outcore::versioned
