// The library's own calls: the linker's --wrap sends them here, past the functions that the library
// exports to the program (cmake/preload.cmake names them all).
#include "run/preload/inside.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "core/os/uapi.h"
#include "run/preload/own_descriptors.h"
#include "run/preload/own_threads.h"
#include "run/preload/real.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
namespace outcore::preload {

constinit thread_local unsigned inside_depth = 0;

void become_ours(const char* name) {
  ::pthread_setname_np(::pthread_self(), name);
  ++inside_depth;
  sigset_t all;
  sigfillset(&all);
  sigdelset(&all, SIGSYS);  // if blocked, a trapped call would end the process
  real().pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace outcore::preload

using outcore::preload::OwnDescriptors;
using outcore::preload::OwnThreads;
using outcore::preload::real;

extern "C" {

int __real_memfd_create(const char*, unsigned);
int __real_eventfd(unsigned, int);
int __real_socket(int, int, int);
int __real_accept4(int, struct sockaddr*, socklen_t*, int);
int __real_mkostemp(char*, int);
FILE* __real_fopen64(const char*, const char*);
int __real_poll(struct pollfd*, nfds_t, int);

void* __wrap_mmap(void* a, size_t n, int prot, int flags, int fd, off_t offset) {
  return real().mmap(a, n, prot, flags, fd, offset);
}
int __wrap_munmap(void* a, size_t n) { return real().munmap(a, n); }
void* __wrap_mremap(void* a, size_t n, size_t m, int flags, void* to) {
  return real().mremap(a, n, m, flags, to);
}
int __wrap_mprotect(void* a, size_t n, int prot) { return real().mprotect(a, n, prot); }
int __wrap_madvise(void* a, size_t n, int advice) { return real().madvise(a, n, advice); }
int __wrap_mincore(void* a, size_t n, unsigned char* v) { return real().mincore(a, n, v); }
int __wrap_munlock(const void* a, size_t n) { return real().munlock(a, n); }
int __wrap_msync(void* a, size_t n, int flags) { return real().msync(a, n, flags); }
ssize_t __wrap_read(int fd, void* p, size_t n) { return real().read(fd, p, n); }
ssize_t __wrap_write(int fd, const void* p, size_t n) { return real().write(fd, p, n); }
ssize_t __wrap_pread(int fd, void* p, size_t n, off_t at) { return real().pread(fd, p, n, at); }
ssize_t __wrap_pwrite(int fd, const void* p, size_t n, off_t at) {
  return real().pwrite(fd, p, n, at);
}
ssize_t __wrap_writev(int fd, const iovec* v, int n) { return real().writev(fd, v, n); }
ssize_t __wrap_send(int fd, const void* p, size_t n, int flags) {
  return real().send(fd, p, n, flags);
}
off_t __wrap_lseek(int fd, off_t at, int whence) { return real().lseek(fd, at, whence); }
int __wrap_ftruncate(int fd, off_t n) { return real().ftruncate(fd, n); }
int __wrap_fallocate(int fd, int mode, off_t at, off_t n) {
  return real().fallocate(fd, mode, at, n);
}
int __wrap_fsync(int fd) { return real().fsync(fd); }
int __wrap_fdatasync(int fd) { return real().fdatasync(fd); }
int __wrap_sigaction(int signal, const struct sigaction* now, struct sigaction* before) {
  return real().sigaction(signal, now, before);
}
int __wrap_pthread_sigmask(int how, const sigset_t* now, sigset_t* before) {
  return real().pthread_sigmask(how, now, before);
}
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                          void* (*function)(void*), void* argument) {
  return OwnThreads::start(thread, attributes, function, argument);
}
int __wrap_raise(int signal) { return real().raise(signal); }
FILE* __wrap_fopen(const char* path, const char* mode) { return real().fopen(path, mode); }
int __wrap_fclose(FILE* file) { return real().fclose(file); }
FILE* __wrap_fopen64(const char* path, const char* mode) { return real().fopen(path, mode); }
void __wrap_abort() {
  real().abort();
  __builtin_unreachable();
}
void __wrap__exit(int status) {
  real()._exit(status);
  __builtin_unreachable();
}

int __wrap_open(const char* path, int flags, mode_t mode) {
  return OwnDescriptors::keep(real().open(path, flags, mode));
}
int __wrap_openat(int folder, const char* path, int flags, mode_t mode) {
  return OwnDescriptors::keep(real().openat(folder, path, flags, mode));
}
int __wrap_fcntl(int fd, int command, long argument) {
  const int result = real().fcntl(fd, command, argument);
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? OwnDescriptors::keep(result) : result;
}
int __wrap_close(int fd) {
  OwnDescriptors::forget(fd);
  return real().close(fd);
}
int __wrap_memfd_create(const char* name, unsigned flags) {
  return OwnDescriptors::keep(__real_memfd_create(name, flags));
}
int __wrap_eventfd(unsigned value, int flags) {
  return OwnDescriptors::keep(__real_eventfd(value, flags));
}
int __wrap_socket(int domain, int type, int protocol) {
  return OwnDescriptors::keep(__real_socket(domain, type, protocol));
}
int __wrap_accept4(int fd, struct sockaddr* address, socklen_t* size, int flags) {
  return OwnDescriptors::keep(__real_accept4(fd, address, size, flags));
}
int __wrap_mkostemp(char* path, int flags) {
  return OwnDescriptors::keep(__real_mkostemp(path, flags));
}
int __wrap_ioctl(int fd, unsigned long request, long argument) {
  const int result = real().ioctl(fd, request, argument);
  return request == _IO(0xAA, 0x00)  // USERFAULTFD_IOC_NEW
             ? OwnDescriptors::keep(result)
             : result;
}
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
  const long result = real().syscall(number, a, b, c, d, e, f);
  const bool makes_descriptor = number == SYS_userfaultfd || number == SYS_pidfd_open;
  return makes_descriptor ? OwnDescriptors::keep(static_cast<int>(result)) : result;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
