#include "run/preload/in_memory.h"

#include <linux/magic.h>
#include <sys/vfs.h>

namespace outcore::preload {

bool is_kept_in_memory(int fd, const struct stat& about) {
  constexpr long kSecretMemory = 0x5345434d, kGuestMemory = 0x474d454d;  // memfd_secret, KVM's
  struct statfs filesystem;
  return S_ISREG(about.st_mode) && ::fstatfs(fd, &filesystem) == 0 &&
         (filesystem.f_type == TMPFS_MAGIC || filesystem.f_type == RAMFS_MAGIC ||
          filesystem.f_type == HUGETLBFS_MAGIC || filesystem.f_type == kSecretMemory ||
          filesystem.f_type == kGuestMemory || filesystem.f_type == PROC_SUPER_MAGIC);
}

}  // namespace outcore::preload
