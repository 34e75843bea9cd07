#include "run/preload/others.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "run/preload/descriptor_table.h"
#include "run/preload/own_descriptors.h"

namespace outcore::preload {
namespace {

// The kernel fills this in. This file does not use opendir() or streams, because they allocate from
// the program's heap: a thread that waits in fork() for the door's lock may hold that heap's locks.
struct Entry {
  uint64_t inode;
  int64_t next;
  uint16_t size_bytes;
  uint8_t type;
  char name[];
};

// Whether this thread, since it began to look, could not open something for lack of descriptors or
// memory: then it is not known who has a file open.
constinit thread_local bool is_blind = false;

bool note_failure() {
  is_blind = is_blind || errno == EMFILE || errno == ENFILE || errno == ENOMEM;
  return false;
}

// Calls f(number) for each entry of a folder whose name is a number, until f returns true.
template <typename F>
bool for_each_number(const std::string& folder, const F& f) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return note_failure();
  alignas(Entry) char buffer[4096];
  bool is_found = false;
  for (long n; !is_found && (n = ::syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0;) {
    for (long at = 0; at < n && !is_found;) {
      const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
      at += entry->size_bytes;
      char* end = nullptr;
      const long number = std::strtol(entry->name, &end, 10);
      if (end != entry->name && *end == 0) is_found = f(number);
    }
  }
  ::close(fd);
  return is_found;
}

// The whole text of a file in /proc; empty if it cannot be read.
std::string text_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return note_failure(), std::string();
  std::string text;
  char part[4096];
  for (ssize_t n; (n = ::read(fd, part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(n));
  ::close(fd);
  return text;
}

bool is_file(const std::string& path, const Identity& file) {
  struct stat about;
  return ::stat(path.c_str(), &about) == 0 && identity_of(about) == file;
}

// Counts the mappings of the file in /proc/PID/maps, except those that are known.
uint32_t count_maps(const std::string& process, const Identity& file,
                    const std::function<bool(std::byte*)>& is_known) {
  const std::string maps = text_of(process + "/maps");
  uint32_t count = 0;
  for (size_t at = 0, next = 0; at < maps.size(); at = next + 1) {
    next = std::min(maps.find('\n', at), maps.size());
    const std::string line = maps.substr(at, next - at);
    unsigned major = 0, minor = 0;
    unsigned long inode = 0, start = 0;
    if (std::sscanf(line.c_str(), "%lx-%*s %*s %*s %x:%x %lu", &start, &major, &minor, &inode) != 4)
      continue;
    if (inode == file.inode && ::makedev(major, minor) == file.device &&
        !is_known(reinterpret_cast<std::byte*>(start)))
      ++count;
  }
  return count;
}

std::string name_of(const std::string& process, long pid) {
  std::string name = text_of(process + "/comm");
  name.resize(std::min(name.find('\n'), name.size()));
  return name + " (" + std::to_string(pid) + ")";
}

}  // namespace

// A ring of io_uring, or the one of aio, is a file of a special kind, which its name shows.
bool has_ring() {
  if (text_of("/proc/self/maps").find("/[aio]") != std::string::npos) return true;
  return for_each_number("/proc/self/fd", [](long number) {
    char kind[64] = {};
    if (OwnDescriptors::has(static_cast<int>(number))) return false;
    const std::string link = "/proc/self/fd/" + std::to_string(number);
    return ::readlink(link.c_str(), kind, sizeof kind - 1) > 0 &&
           std::string_view(kind) == "anon_inode:[io_uring]";
  });
}

std::string who_has(const Identity& file) {
  return who_has(file, [](int) { return true; });
}

std::string who_has(const Identity& file, const std::function<bool(int)>& is_meant) {
  std::string found;
  is_blind = false;
  for_each_number("/proc", [&](long pid) {
    if (pid == ::getpid()) return false;
    const std::string process = "/proc/" + std::to_string(pid);
    const bool has_open = for_each_number(process + "/fd", [&](long fd) {
      return is_file(process + "/fd/" + std::to_string(fd), file);
    });
    if (!has_open && count_maps(process, file, [](std::byte*) { return false; }) == 0) return false;
    if (!is_meant(static_cast<int>(pid))) return false;
    found = name_of(process, pid);
    return true;
  });
  return found.empty() && is_blind ? "somebody that could not be looked for" : found;
}

bool is_under_run(int process) {
  const std::string about = "/proc/" + std::to_string(process);
  return text_of(about + "/maps").find("/liboutcore_preload.so") != std::string::npos ||
         text_of(about + "/environ").find("OUTCORE_RUN_ROOT=") != std::string::npos;
}

bool for_each_own_descriptor(const Identity& file, const std::function<void(int)>& f) {
  is_blind = false;
  for_each_number("/proc/self/fd", [&](long number) {
    const int fd = static_cast<int>(number);
    if (!OwnDescriptors::has(fd) && is_file("/proc/self/fd/" + std::to_string(fd), file)) f(fd);
    return false;
  });
  return !is_blind;
}

OwnUse own_use_of(const Identity& file, const std::function<bool(std::byte*)>& is_known) {
  OwnUse use;
  is_blind = false;
  for_each_own_descriptor(file, [&](int fd) {
    const int flags = ::fcntl(fd, F_GETFL, 0L);
    if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) use.is_open_for_writing = true;
    if (fd <= STDERR_FILENO || DescriptorTable::is_stdio(fd)) use.is_in_stdio = true;
  });
  use.kernel_mappings = count_maps("/proc/self", file, is_known);
  use.has_later_writes = has_ring();
  use.is_unknown = is_blind;
  return use;
}

}  // namespace outcore::preload
