// Real: the functions that the program's calls would reach without this library: those of the next
// library in line, mostly the C library. Any thread; the first call looks them up.
#pragma once

#include <aio.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <threads.h>
#include <ucontext.h>
#include <unistd.h>

namespace outcore::preload {

// X(result, name, parameters): all calls that are taken over.
#define OUTCORE_CALLS(X)                                                                         \
  X(void*, mmap, (void*, size_t, int, int, int, off_t))                                          \
  X(int, munmap, (void*, size_t))                                                                \
  X(void*, mremap, (void*, size_t, size_t, int, ...))                                            \
  X(int, mprotect, (void*, size_t, int))                                                         \
  X(int, msync, (void*, size_t, int))                                                            \
  X(int, madvise, (void*, size_t, int))                                                          \
  X(int, posix_madvise, (void*, size_t, int))                                                    \
  X(int, mincore, (void*, size_t, unsigned char*))                                               \
  X(int, mlock, (const void*, size_t))                                                           \
  X(int, mlock2, (const void*, size_t, unsigned))                                                \
  X(int, munlock, (const void*, size_t))                                                         \
  X(int, mlockall, (int))                                                                        \
  X(int, munlockall, (void))                                                                     \
  X(ssize_t, read, (int, void*, size_t))                                                         \
  X(ssize_t, write, (int, const void*, size_t))                                                  \
  X(ssize_t, pread, (int, void*, size_t, off_t))                                                 \
  X(ssize_t, pwrite, (int, const void*, size_t, off_t))                                          \
  X(ssize_t, readv, (int, const struct iovec*, int))                                             \
  X(ssize_t, writev, (int, const struct iovec*, int))                                            \
  X(ssize_t, preadv, (int, const struct iovec*, int, off_t))                                     \
  X(ssize_t, pwritev, (int, const struct iovec*, int, off_t))                                    \
  X(ssize_t, preadv2, (int, const struct iovec*, int, off_t, int))                               \
  X(ssize_t, pwritev2, (int, const struct iovec*, int, off_t, int))                              \
  X(ssize_t, send, (int, const void*, size_t, int))                                              \
  X(ssize_t, sendto, (int, const void*, size_t, int, const struct sockaddr*, socklen_t))         \
  X(ssize_t, sendmsg, (int, const struct msghdr*, int))                                          \
  X(int, sendmmsg, (int, struct mmsghdr*, unsigned, int))                                        \
  X(ssize_t, recv, (int, void*, size_t, int))                                                    \
  X(ssize_t, recvfrom, (int, void*, size_t, int, struct sockaddr*, socklen_t*))                  \
  X(ssize_t, recvmsg, (int, struct msghdr*, int))                                                \
  X(ssize_t, sendfile, (int, int, off_t*, size_t))                                               \
  X(ssize_t, copy_file_range, (int, off_t*, int, off_t*, size_t, unsigned))                      \
  X(ssize_t, splice, (int, off_t*, int, off_t*, size_t, unsigned))                               \
  X(size_t, fread, (void*, size_t, size_t, FILE*))                                               \
  X(size_t, fwrite, (const void*, size_t, size_t, FILE*))                                        \
  X(size_t, fread_unlocked, (void*, size_t, size_t, FILE*))                                      \
  X(size_t, fwrite_unlocked, (const void*, size_t, size_t, FILE*))                               \
  X(int, ftruncate, (int, off_t))                                                                \
  X(int, truncate, (const char*, off_t))                                                         \
  X(int, fallocate, (int, int, off_t, off_t))                                                    \
  X(int, posix_fallocate, (int, off_t, off_t))                                                   \
  X(int, utime, (const char*, const struct utimbuf*))                                            \
  X(int, utimes, (const char*, const struct timeval*))                                           \
  X(int, lutimes, (const char*, const struct timeval*))                                          \
  X(int, futimes, (int, const struct timeval*))                                                  \
  X(int, futimesat, (int, const char*, const struct timeval*))                                   \
  X(int, utimensat, (int, const char*, const struct timespec*, int))                             \
  X(int, futimens, (int, const struct timespec*))                                                \
  X(int, fsync, (int))                                                                           \
  X(int, fdatasync, (int))                                                                       \
  X(off_t, lseek, (int, off_t, int))                                                             \
  X(int, ioctl, (int, unsigned long, ...))                                                       \
  X(void, sync, (void))                                                                          \
  X(int, syncfs, (int))                                                                          \
  X(int, sync_file_range, (int, off64_t, off64_t, unsigned))                                     \
  X(int, setcontext, (const ucontext_t*))                                                        \
  X(int, swapcontext, (ucontext_t*, const ucontext_t*))                                          \
  X(int, aio_suspend, (const aiocb* const*, int, const timespec*))                               \
  X(int, aio_read, (struct aiocb*))                                                              \
  X(int, aio_write, (struct aiocb*))                                                             \
  X(int, aio_fsync, (int, struct aiocb*))                                                        \
  X(int, lio_listio, (int, struct aiocb* const*, int, struct sigevent*))                         \
  X(int, pkey_mprotect, (void*, size_t, int, int))                                               \
  X(ssize_t, process_madvise, (int, const struct iovec*, size_t, int, unsigned))                 \
  X(int, remap_file_pages, (void*, size_t, int, size_t, int))                                    \
  X(int, recvmmsg, (int, struct mmsghdr*, unsigned, int, struct timespec*))                      \
  X(ssize_t, vmsplice, (int, const struct iovec*, size_t, unsigned))                             \
  X(ssize_t, process_vm_readv,                                                                   \
    (pid_t, const struct iovec*, unsigned long, const struct iovec*, unsigned long,              \
     unsigned long))                                                                             \
  X(ssize_t, process_vm_writev,                                                                  \
    (pid_t, const struct iovec*, unsigned long, const struct iovec*, unsigned long,              \
     unsigned long))                                                                             \
  X(ssize_t, getrandom, (void*, size_t, unsigned))                                               \
  X(int, getentropy, (void*, size_t))                                                            \
  X(int, open_by_handle_at, (int, struct file_handle*, int))                                     \
  X(long, syscall, (long, ...))                                                                  \
  X(int, open, (const char*, int, ...))                                                          \
  X(int, openat, (int, const char*, int, ...))                                                   \
  X(int, creat, (const char*, mode_t))                                                           \
  X(int, close, (int))                                                                           \
  X(int, close_range, (unsigned, unsigned, int))                                                 \
  X(void, closefrom, (int))                                                                      \
  X(int, dup, (int))                                                                             \
  X(int, dup2, (int, int))                                                                       \
  X(int, dup3, (int, int, int))                                                                  \
  X(int, fcntl, (int, int, ...))                                                                 \
  X(FILE*, fopen, (const char*, const char*))                                                    \
  X(FILE*, freopen, (const char*, const char*, FILE*))                                           \
  X(int, fclose, (FILE*))                                                                        \
  X(FILE*, fdopen, (int, const char*))                                                           \
  X(int, sigaction, (int, const struct sigaction*, struct sigaction*))                           \
  X(sighandler_t, signal, (int, sighandler_t))                                                   \
  X(int, sigprocmask, (int, const sigset_t*, sigset_t*))                                         \
  X(int, pthread_sigmask, (int, const sigset_t*, sigset_t*))                                     \
  X(int, sigaltstack, (const stack_t*, stack_t*))                                                \
  X(int, kill, (pid_t, int))                                                                     \
  X(int, killpg, (pid_t, int))                                                                   \
  X(int, raise, (int))                                                                           \
  X(int, tgkill, (pid_t, pid_t, int))                                                            \
  X(int, pthread_kill, (pthread_t, int))                                                         \
  X(int, sigqueue, (pid_t, int, const union sigval))                                             \
  X(int, pthread_sigqueue, (pthread_t, int, const union sigval))                                 \
  X(int, sigsuspend, (const sigset_t*))                                                          \
  X(int, ppoll, (struct pollfd*, nfds_t, const struct timespec*, const sigset_t*))               \
  X(int, pselect, (int, fd_set*, fd_set*, fd_set*, const struct timespec*, const sigset_t*))     \
  X(int, epoll_pwait, (int, struct epoll_event*, int, int, const sigset_t*))                     \
  X(int, epoll_pwait2, (int, struct epoll_event*, int, const struct timespec*, const sigset_t*)) \
  X(int, pthread_create, (pthread_t*, const pthread_attr_t*, void* (*)(void*), void*))           \
  X(int, thrd_create, (thrd_t*, thrd_start_t, void*))                                            \
  X(int, __register_atfork, (void (*)(void), void (*)(void), void (*)(void), void*))             \
  X(pid_t, fork, (void))                                                                         \
  X(int, daemon, (int, int))                                                                     \
  X(int, execve, (const char*, char* const*, char* const*))                                      \
  X(int, execv, (const char*, char* const*))                                                     \
  X(int, execvp, (const char*, char* const*))                                                    \
  X(int, execvpe, (const char*, char* const*, char* const*))                                     \
  X(int, fexecve, (int, char* const*, char* const*))                                             \
  X(int, posix_spawn,                                                                            \
    (pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,           \
     char* const*, char* const*))                                                                \
  X(int, posix_spawnp,                                                                           \
    (pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,           \
     char* const*, char* const*))                                                                \
  X(int, system, (const char*))                                                                  \
  X(FILE*, popen, (const char*, const char*))                                                    \
  X(void, _exit, (int))                                                                          \
  X(void, _Exit, (int))                                                                          \
  X(void, quick_exit, (int))                                                                     \
  X(int, execveat, (int, const char*, char* const*, char* const*, int))                          \
  X(void, abort, (void))

struct Real {
#define OUTCORE_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  OUTCORE_CALLS(OUTCORE_MEMBER)
#undef OUTCORE_MEMBER
};

// The table of the real functions. Async-signal-safe after the first call.
const Real& real();
// Other functions stand in its place from now on. Threads that call meanwhile reach either.
void replace_real(const Real& table);

}  // namespace outcore::preload
