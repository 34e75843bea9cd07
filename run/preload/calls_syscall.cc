// syscall(): a system call by its number. Where this library takes over the C library's function
// for a call, the call by number does the same. For all others we jump to the C library's
// syscall(), with no frame of ours on the stack, because vfork by number returns twice. See
// calls.h.
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <array>
#include <cstring>

#include "core/os/signal_delivery.h"
#include "run/preload/answered_calls.h"
#include "run/preload/as_program.h"
#include "run/preload/calls.h"
#include "run/preload/deadly_signals.h"
#include "run/preload/later_writes.h"
#include "run/preload/more_opens.h"
#include "run/preload/own_heap.h"
#include "run/preload/ranges.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

// Newer than the headers of Debian 12.
constexpr long kMseal = 462;

enum Fate { kNothing, kFaults, kNeedsSetUp, kRefused, kTakenOver };

constexpr auto make_marks() {
  std::array<unsigned char, 512> marks{};
#define X(name, number, fate, remark) \
  marks[number] = (fate) == kTakenOver || (fate) == kRefused ? 1 : 0;
#include "run/preload/system_calls.inc"
#undef X
  return marks;
}

template <typename T>
T* to(long word) {
  return reinterpret_cast<T*>(word);
}
long from(void* p) { return reinterpret_cast<long>(p); }

// The arguments of one call.
struct Words {
  long a, b, c, d, e, f;
};

int as_int(long word) { return static_cast<int>(word); }
unsigned as_unsigned(long word) { return static_cast<unsigned>(word); }
size_t as_size(long word) { return static_cast<size_t>(word); }

// Anonymous memory that is mapped by number is an allocator's own, and left to the kernel.
long map_memory(const Words& w) {
  const int flags = as_int(w.d);
  if ((flags & MAP_ANONYMOUS) != 0 && (flags & MAP_FIXED) == 0)
    return from(real().mmap(to<void>(w.a), as_size(w.b), as_int(w.c), flags, as_int(w.e), w.f));
  return from(as_program::mmap(to<void>(w.a), as_size(w.b), as_int(w.c), flags, as_int(w.e), w.f));
}

constexpr size_t kKernelsMaskBytes = 8;

long set_mask(const Words& w) {
  sigset_t now, before;
  if (as_size(w.d) != kKernelsMaskBytes) return fail(EINVAL);
  sigemptyset(&now);
  sigemptyset(&before);
  if (w.b != 0) std::memcpy(&now, to<void>(w.b), kKernelsMaskBytes);
  const int result =
      sigprocmask(as_int(w.a), w.b == 0 ? nullptr : &now, w.c == 0 ? nullptr : &before);
  if (result == 0 && w.c != 0) std::memcpy(to<void>(w.c), &before, kKernelsMaskBytes);
  return result;
}

// The kernel's struct sigaction. The C library puts a function of its own in `restorer`.
struct KernelsAction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};

// The actions of all signals but the C library's own (below SIGRTMIN) are those of sigaction().
long set_action(const Words& w) {
  constexpr unsigned kRestorer = 0x04000000;  // SA_RESTORER
  const int number = as_int(w.a);
  if (as_size(w.d) != kKernelsMaskBytes) return fail(EINVAL);
  KernelsAction action{};
  if (w.b != 0 && !outcore::os::copy_or_fail(&action, to<void>(w.b), sizeof action))
    return fail(EFAULT);
  if (number > SIGSYS && number < SIGRTMIN) {
    for (const int fault : kFaultSignals) action.mask &= ~(1UL << (fault - 1));
    return real().syscall(SYS_rt_sigaction, w.a, w.b == 0 ? nullptr : &action, w.c, w.d);
  }
  struct sigaction now {
  }, before{};
  now.sa_handler = action.handler;
  now.sa_flags = static_cast<int>(action.flags & ~kRestorer);
  std::memcpy(&now.sa_mask, &action.mask, kKernelsMaskBytes);
  const int result =
      as_program::sigaction(number, w.b == 0 ? nullptr : &now, w.c == 0 ? nullptr : &before);
  if (result != 0 || w.c == 0) return result;
  auto flags = static_cast<unsigned>(before.sa_flags);  // bit 31 is no sign
  if (before.sa_restorer == nullptr) flags &= ~kRestorer;
  action = {before.sa_handler, flags, before.sa_restorer, 0};
  std::memcpy(&action.mask, &before.sa_mask, kKernelsMaskBytes);
  return outcore::os::copy_or_fail(to<void>(w.c), &action, sizeof action) ? 0 : fail(EFAULT);
}

long on_memory(long number, const Words& w) {
  void* p = to<void>(w.a);
  const size_t n = as_size(w.b);
  switch (number) {
    case SYS_mmap:
      return map_memory(w);
    case SYS_munmap:
      return as_program::munmap(p, n);
    case SYS_mremap:
      return from(as_program::mremap(p, n, as_size(w.c), as_int(w.d), to<void>(w.e)));
    case SYS_mprotect:
      return as_program::mprotect(p, n, as_int(w.c));
    case SYS_pkey_mprotect:
      return pkey_mprotect(p, n, as_int(w.c), as_int(w.d));
    case SYS_msync:
      return as_program::msync(p, n, as_int(w.c));
    case SYS_madvise:
      return as_program::madvise(p, n, as_int(w.c));
    case SYS_process_madvise:
      return process_madvise(as_int(w.a), to<iovec>(w.b), as_size(w.c), as_int(w.d),
                             as_unsigned(w.e));
    case SYS_mincore:
      return as_program::mincore(p, n, to<unsigned char>(w.c));
    case SYS_mlock:
      return mlock(p, n);
    case SYS_mlock2:
      return mlock2(p, n, as_unsigned(w.c));
    case SYS_munlock:
      return as_program::munlock(p, n);
    case SYS_mlockall:
      return mlockall(as_int(w.a));
    case SYS_munlockall:
      return munlockall();
    case SYS_remap_file_pages:
      return remap_file_pages(p, n, as_int(w.c), as_size(w.d), as_int(w.e));
    case kMseal:
      return mseal(p, n, static_cast<unsigned long>(w.c));
    case SYS_process_vm_readv:
      return process_vm_readv(as_int(w.a), to<iovec>(w.b), as_size(w.c), to<iovec>(w.d),
                              as_size(w.e), as_size(w.f));
    case SYS_process_vm_writev:
      return process_vm_writev(as_int(w.a), to<iovec>(w.b), as_size(w.c), to<iovec>(w.d),
                               as_size(w.e), as_size(w.f));
    case SYS_getrandom:
      return getrandom(p, n, as_unsigned(w.c));
    default:
      return fail(ENOSYS);
  }
}

long on_bytes(long number, const Words& w) {
  const int fd = as_int(w.a);
  void* p = to<void>(w.b);
  const auto* list = to<const iovec>(w.b);
  const size_t n = as_size(w.c);
  switch (number) {
    case SYS_read:
      return as_program::read(fd, p, n);
    case SYS_write:
      return as_program::write(fd, p, n);
    case SYS_pread64:
      return as_program::pread(fd, p, n, w.d);
    case SYS_pwrite64:
      return as_program::pwrite(fd, p, n, w.d);
    case SYS_readv:
      return readv(fd, list, as_int(w.c));
    case SYS_writev:
      return as_program::writev(fd, list, as_int(w.c));
    case SYS_preadv:
      return preadv(fd, list, as_int(w.c), w.d);
    case SYS_pwritev:
      return pwritev(fd, list, as_int(w.c), w.d);
    case SYS_preadv2:
      return preadv2(fd, list, as_int(w.c), w.d, as_int(w.f));
    case SYS_pwritev2:
      return pwritev2(fd, list, as_int(w.c), w.d, as_int(w.f));
    case SYS_sendto:
      return sendto(fd, p, n, as_int(w.d), to<sockaddr>(w.e), static_cast<socklen_t>(w.f));
    case SYS_sendmsg:
      return sendmsg(fd, to<msghdr>(w.b), as_int(w.c));
    case SYS_sendmmsg:
      return sendmmsg(fd, to<mmsghdr>(w.b), as_unsigned(w.c), as_int(w.d));
    case SYS_recvfrom:
      return recvfrom(fd, p, n, as_int(w.d), to<sockaddr>(w.e), to<socklen_t>(w.f));
    case SYS_recvmsg:
      return recvmsg(fd, to<msghdr>(w.b), as_int(w.c));
    case SYS_recvmmsg:
      return recvmmsg(fd, to<mmsghdr>(w.b), as_unsigned(w.c), as_int(w.d), to<timespec>(w.e));
    case SYS_sendfile:
      return sendfile(fd, as_int(w.b), to<off_t>(w.c), as_size(w.d));
    case SYS_copy_file_range:
      return copy_file_range(fd, to<off_t>(w.b), as_int(w.c), to<off_t>(w.d), as_size(w.e),
                             as_unsigned(w.f));
    case SYS_splice:
      return splice(fd, to<off_t>(w.b), as_int(w.c), to<off_t>(w.d), as_size(w.e),
                    as_unsigned(w.f));
    case SYS_vmsplice:
      return vmsplice(fd, list, n, as_unsigned(w.d));
    default:
      return on_memory(number, w);
  }
}

long on_file(long number, const Words& w) {
  const int fd = as_int(w.a);
  switch (number) {
    case SYS_open:
      return as_program::open(to<char>(w.a), as_int(w.b), static_cast<mode_t>(w.c));
    case SYS_openat:
      return as_program::openat(fd, to<char>(w.b), as_int(w.c), static_cast<mode_t>(w.d));
    case SYS_openat2:
      return open_at_how(fd, to<char>(w.b), to<open_how>(w.c), as_size(w.d));
    case SYS_creat:
      return creat(to<char>(w.a), static_cast<mode_t>(w.b));
    case SYS_open_by_handle_at:
      return open_by_handle_at(fd, to<file_handle>(w.b), as_int(w.c));
    case SYS_pidfd_getfd:
      return get_descriptor(fd, as_int(w.b), as_unsigned(w.c));
    case SYS_close:
      return as_program::close(fd);
    case SYS_close_range:
      return close_range(as_unsigned(w.a), as_unsigned(w.b), as_int(w.c));
    case SYS_dup:
      return dup(fd);
    case SYS_dup2:
      return dup2(fd, as_int(w.b));
    case SYS_dup3:
      return dup3(fd, as_int(w.b), as_int(w.c));
    case SYS_fcntl:
      return as_program::fcntl(fd, as_int(w.b), w.c);
    case SYS_ioctl:
      return as_program::ioctl(fd, static_cast<unsigned long>(w.b), w.c);
    case SYS_lseek:
      return as_program::lseek(fd, w.b, as_int(w.c));
    case SYS_truncate:
      return truncate(to<char>(w.a), w.b);
    case SYS_ftruncate:
      return as_program::ftruncate(fd, w.b);
    case SYS_fallocate:
      return as_program::fallocate(fd, as_int(w.b), w.c, w.d);
    case SYS_utime:
    case SYS_utimes:
    case SYS_futimesat:
    case SYS_utimensat:
      return set_times(number, w.a, w.b, w.c, w.d);
    case SYS_fsync:
      return as_program::fsync(fd);
    case SYS_fdatasync:
      return as_program::fdatasync(fd);
    case SYS_sync:
      return sync(), 0;
    case SYS_syncfs:
      return syncfs(fd);
    case SYS_sync_file_range:
      return sync_file_range(fd, w.b, w.c, as_unsigned(w.d));
    default:
      return on_bytes(number, w);
  }
}

// Sends a signal to a thread, or with a siginfo. By number, because the C library's functions would
// fill in another siginfo.
long send_signal(long number, const Words& w) {
  const bool has_thread = number == SYS_tgkill || number == SYS_rt_tgsigqueueinfo;
  const long whom = has_thread ? w.b : w.a;
  const long self = number == SYS_rt_sigqueueinfo ? ::getpid() : ::gettid();
  const DeadlySignals::Sending sending(as_int(whom) == self ? as_int(has_thread ? w.c : w.b) : 0);
  return real().syscall(number, w.a, w.b, w.c, w.d);
}

long on_process(long number, const Words& w) {
  switch (number) {
    case SYS_fork:
      return fork();
    case SYS_execve:
      return execve(to<char>(w.a), to<char*>(w.b), to<char*>(w.c));
    case SYS_execveat:
      return execveat(as_int(w.a), to<char>(w.b), to<char*>(w.c), to<char*>(w.d), as_int(w.e));
    case SYS_kill:
      return kill(as_int(w.a), as_int(w.b));
    case SYS_tkill:
    case SYS_tgkill:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
      return send_signal(number, w);
    case SYS_exit_group:
      return as_program::_exit(as_int(w.a)), 0;
    case SYS_rt_sigprocmask:
      return set_mask(w);
    case SYS_rt_sigaction:
      return set_action(w);
    case SYS_sigaltstack:
      return sigaltstack(to<stack_t>(w.a), to<stack_t>(w.b));
    case SYS_prctl:
      return prctl(as_int(w.a), w.b, w.c, w.d, w.e);
    case SYS_seccomp:
      // Other operations only ask, and without a filter the call does nothing.
      if (as_unsigned(w.a) == SECCOMP_SET_MODE_FILTER && w.c != 0)
        return into_sandbox({number, w.a, w.b, w.c, w.d, w.e});
      return real().syscall(number, w.a, w.b, w.c);
    case SYS_io_setup:
    case SYS_io_uring_setup:
      if (!is_ready(before_later_writes)) return -1;
      return real().syscall(number, w.a, w.b, w.c, w.d, w.e, w.f);
    default:
      return on_file(number, w);
  }
}

}  // namespace

extern "C" {
// For the assembly below.
extern const std::array<unsigned char, 512> outcore_syscall_marks;
[[gnu::used]] constinit const std::array<unsigned char, 512> outcore_syscall_marks = make_marks();
long outcore_look_up_syscall(long, long, long, long, long, long, long);
[[gnu::used]] constinit std::atomic<long (*)(long, long, long, long, long, long, long)>
    outcore_real_syscall{outcore_look_up_syscall};

[[gnu::used]] long outcore_look_up_syscall(long number, long a, long b, long c, long d, long e,
                                           long f) {
  outcore_real_syscall.store(
      reinterpret_cast<long (*)(long, long, long, long, long, long, long)>(real().syscall));
  return real().syscall(number, a, b, c, d, e, f);
}

[[gnu::used]] long outcore_answer_syscall(long number, long a, long b, long c, long d, long e,
                                          long f) {
  // What another allocator maps for itself is left to the kernel (Heap::wants_mapping).
  const bool is_for_a_heap = number == SYS_mmap && (d & MAP_ANONYMOUS) != 0 &&
                             (d & MAP_FIXED) == 0 &&
                             is_code_of_another_heap(__builtin_return_address(0));
  if (is_inside() || is_for_a_heap) return real().syscall(number, a, b, c, d, e, f);
  return on_process(number, {a, b, c, d, e, f});
}
}

namespace outcore::preload {

bool is_answered_call(long number) {
  return number >= 0 && static_cast<size_t>(number) < outcore_syscall_marks.size() &&
         outcore_syscall_marks[static_cast<size_t>(number)] != 0;
}

}  // namespace outcore::preload

// The arguments are already in the registers in which the called function expects them.
asm(R"(
  .text
  .globl syscall
  .type syscall, @function
syscall:
  .cfi_startproc
  endbr64
  cmpq $511, %rdi
  ja 1f
  leaq outcore_syscall_marks(%rip), %rax
  cmpb $0, (%rax,%rdi)
  jne outcore_answer_syscall
1:
  jmpq *outcore_real_syscall(%rip)
  .cfi_endproc
  .size syscall, .-syscall
)");
