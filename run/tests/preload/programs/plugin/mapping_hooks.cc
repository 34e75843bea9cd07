// A library that takes over the calls on mappings, and makes them by syscall(): so does tcmalloc of
// gperftools, which counts them. It is in line behind what is preloaded.
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {

void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
void* mmap64(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  return mmap(address, bytes, protection, flags, file, offset);
}
int munmap(void* address, size_t bytes) noexcept {
  return static_cast<int>(::syscall(SYS_munmap, address, bytes));
}
void* mremap(void* address, size_t bytes, size_t more, int flags, ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* const to = va_arg(arguments, void*);
  va_end(arguments);
  return reinterpret_cast<void*>(::syscall(SYS_mremap, address, bytes, more, flags, to));
}

// So that a program can need this library.
int outcore_tests_hooked();
int outcore_tests_hooked() { return 1; }
}
