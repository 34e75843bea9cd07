// Calls of this library on ranges of the window: they are made by the window's own instruction,
// because the filter would trap them from any other. See window.h.
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdarg>

#include "run/preload/inside.h"
#include "run/preload/real.h"
#include "run/preload/window.h"

namespace outcore::preload {
namespace {

Real direct;  // the functions as they were before

long word(const void* p) { return reinterpret_cast<long>(p); }

// Returns -1 and sets errno on failure, as the C library does.
template <typename... Words>
long pass(long number, Words... words) {
  const long all[6] = {static_cast<long>(words)...};
  const long result = Window::call(number, all);
  if (result > -4096 && result < 0) return errno = static_cast<int>(-result), -1;
  return result;
}
template <typename... Words>
int pass_int(long number, Words... words) {
  return static_cast<int>(pass(number, words...));
}

bool is_there(const void* a, size_t n) { return Window::covers(a, n); }
// For buffers of our own calls: the functions that the program calls look at its buffers.
bool is_own(const void* p, size_t n) { return is_inside() && Window::covers(p, n); }

void* map(void* a, size_t n, int protection, int flags, int fd, off_t at) {
  if (!is_there(a, n)) return direct.mmap(a, n, protection, flags, fd, at);
  return reinterpret_cast<void*>(pass(SYS_mmap, word(a), n, protection, flags, fd, at));
}
int unmap(void* a, size_t n) {
  return is_there(a, n) ? pass_int(SYS_munmap, word(a), n) : direct.munmap(a, n);
}
void* remap(void* a, size_t n, size_t m, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  // It is read even if the caller did not pass it, as the C library does.
  void* to = va_arg(arguments, void*);
  va_end(arguments);
  const bool has_target = (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0;
  if (!is_there(a, n) && !(has_target && is_there(to, m))) return direct.mremap(a, n, m, flags, to);
  return reinterpret_cast<void*>(
      pass(SYS_mremap, word(a), n, m, flags, has_target ? word(to) : 0L));
}
int protect(void* a, size_t n, int protection) {
  if (!is_there(a, n)) return direct.mprotect(a, n, protection);
  return pass_int(SYS_mprotect, word(a), n, protection);
}
int sync(void* a, size_t n, int flags) {
  return is_there(a, n) ? pass_int(SYS_msync, word(a), n, flags) : direct.msync(a, n, flags);
}
int advise(void* a, size_t n, int advice) {
  return is_there(a, n) ? pass_int(SYS_madvise, word(a), n, advice) : direct.madvise(a, n, advice);
}
int look_up(void* a, size_t n, unsigned char* states) {
  if (!is_there(a, n)) return direct.mincore(a, n, states);
  return pass_int(SYS_mincore, word(a), n, word(states));
}
int lock(const void* a, size_t n) {
  return is_there(a, n) ? pass_int(SYS_mlock, word(a), n) : direct.mlock(a, n);
}
int lock2(const void* a, size_t n, unsigned flags) {
  return is_there(a, n) ? pass_int(SYS_mlock2, word(a), n, flags) : direct.mlock2(a, n, flags);
}
int unlock(const void* a, size_t n) {
  return is_there(a, n) ? pass_int(SYS_munlock, word(a), n) : direct.munlock(a, n);
}
int give_key(void* a, size_t n, int protection, int key) {
  if (!is_there(a, n)) return direct.pkey_mprotect(a, n, protection, key);
  return pass_int(SYS_pkey_mprotect, word(a), n, protection, key);
}
int remap_pages(void* a, size_t n, int protection, size_t page, int flags) {
  if (!is_there(a, n)) return direct.remap_file_pages(a, n, protection, page, flags);
  return pass_int(SYS_remap_file_pages, word(a), n, protection, page, flags);
}
ssize_t read_at(int fd, void* p, size_t n, off_t at) {
  return is_own(p, n) ? pass(SYS_pread64, fd, word(p), n, at) : direct.pread(fd, p, n, at);
}
ssize_t write_at(int fd, const void* p, size_t n, off_t at) {
  return is_own(p, n) ? pass(SYS_pwrite64, fd, word(p), n, at) : direct.pwrite(fd, p, n, at);
}

}  // namespace

void pass_ranges() {
  direct = real();
  Real now = direct;
  now.mmap = map;
  now.munmap = unmap;
  now.mremap = remap;
  now.mprotect = protect;
  now.msync = sync;
  now.madvise = advise;
  now.mincore = look_up;
  now.mlock = lock;
  now.mlock2 = lock2;
  now.munlock = unlock;
  now.pkey_mprotect = give_key;
  now.remap_file_pages = remap_pages;
  now.pread = read_at;
  now.pwrite = write_at;
  replace_real(now);
}

}  // namespace outcore::preload
