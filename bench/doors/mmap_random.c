// Preloaded into a rival: each file mapping of kSizeMin bytes or more is advised MADV_RANDOM as it
// is made, so that the kernel reads one page a fault in place of its readahead.
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { kSizeMin = 16 << 20 };

void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) {
  void* const at = (void*)syscall(SYS_mmap, address, size, protection, flags, file, (long)offset);
  const int is_file = (flags & MAP_ANONYMOUS) == 0;
  if (at != MAP_FAILED && is_file && size >= kSizeMin) madvise(at, size, MADV_RANDOM);
  return at;
}

void* mmap64(void* address, size_t size, int protection, int flags, int file, off64_t offset) {
  return mmap(address, size, protection, flags, file, offset);
}
