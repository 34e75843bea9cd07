#include "run/preload/kernel_protection.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace outcore::preload {

int kernel_protection(std::span<const std::span<const std::byte>> ranges) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  int found = -1;
  unsigned long start = 0, stop = 0, inode = 0;
  char rights[5] = {};
  for (const std::span<const std::byte> range : ranges) {
    auto at = reinterpret_cast<uint64_t>(range.data());
    for (const uint64_t end = at + range.size(); at < end; at = std::min<uint64_t>(stop, end)) {
      while (stop <= at && std::getline(maps, line))
        if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu", &start, &stop, rights, &inode) !=
            4)
          return -1;
      const int protection = (rights[0] == 'r' ? PROT_READ : 0) |
                             (rights[1] == 'w' ? PROT_WRITE : 0) |
                             (rights[2] == 'x' ? PROT_EXEC : 0);
      const bool is_other = found >= 0 && protection != found;
      if (stop <= at || start > at || inode != 0 || is_other) return -1;
      found = protection;
    }
  }
  return found;
}

}  // namespace outcore::preload
