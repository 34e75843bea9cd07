#include "preload/others.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "preload/descriptor_table.h"
#include "preload/own_descriptors.h"

namespace outcore::preload {
namespace {

// Calls f(number) for the numbers that a folder's entries are, until it returns true.
template <typename F>
bool for_each_number(const std::string& folder, const F& f) {
  DIR* all = ::opendir(folder.c_str());
  if (all == nullptr) return false;
  bool is_found = false;
  while (const dirent* entry = ::readdir(all)) {
    char* end = nullptr;
    const long number = std::strtol(entry->d_name, &end, 10);
    if (end == entry->d_name || *end != 0) continue;
    if ((is_found = f(number))) break;
  }
  ::closedir(all);
  return is_found;
}

bool is_file(const std::string& path, const Identity& file) {
  struct stat about;
  return ::stat(path.c_str(), &about) == 0 && identity_of(about) == file;
}

// Lines of /proc/PID/maps that are of the file.
uint32_t count_maps(const std::string& process, const Identity& file,
                    const std::function<bool(std::byte*)>& is_known) {
  std::ifstream maps(process + "/maps");
  uint32_t count = 0;
  for (std::string line; std::getline(maps, line);) {
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
  std::ifstream comm(process + "/comm");
  std::string name;
  std::getline(comm, name);
  return name + " (" + std::to_string(pid) + ")";
}

}  // namespace

std::string who_has(const Identity& file) {
  std::string found;
  for_each_number("/proc", [&](long pid) {
    if (pid == ::getpid()) return false;
    const std::string process = "/proc/" + std::to_string(pid);
    const bool has_open = for_each_number(process + "/fd", [&](long fd) {
      return is_file(process + "/fd/" + std::to_string(fd), file);
    });
    if (!has_open && count_maps(process, file, [](std::byte*) { return false; }) == 0) return false;
    found = name_of(process, pid);
    return true;
  });
  return found;
}

void for_each_own_descriptor(const Identity& file, const std::function<void(int)>& f) {
  for_each_number("/proc/self/fd", [&](long number) {
    const int fd = static_cast<int>(number);
    if (!OwnDescriptors::has(fd) && is_file("/proc/self/fd/" + std::to_string(fd), file)) f(fd);
    return false;
  });
}

OwnUse own_use_of(const Identity& file, const std::function<bool(std::byte*)>& is_known) {
  OwnUse use;
  for_each_own_descriptor(file, [&](int fd) {
    const int flags = ::fcntl(fd, F_GETFL, 0L);
    if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) use.is_open_for_writing = true;
    if (DescriptorTable::is_stdio(fd)) use.is_in_stdio = true;
  });
  use.kernel_mappings = count_maps("/proc/self", file, is_known);
  return use;
}

}  // namespace outcore::preload
