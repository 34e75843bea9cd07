#include "run/preload/later_writes.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "core/os/own_ring.h"
#include "run/preload/door.h"
#include "run/preload/real.h"

namespace outcore::preload {
namespace {

std::atomic<bool> is_refused{false};

// The program that the kernel runs at each system call. It looks at the number, and for
// io_uring_setup at the sixth argument, which marks our own rings.
constexpr unsigned at(size_t offset) { return static_cast<unsigned>(offset); }
constexpr sock_filter load(unsigned offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
constexpr sock_filter unless_equal(unsigned value, unsigned char skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip);
}
constexpr sock_filter answer(unsigned what) { return BPF_STMT(BPF_RET | BPF_K, what); }

constexpr unsigned kLastArgument = at(offsetof(seccomp_data, args) + 5 * sizeof(uint64_t));
constexpr auto kRingMark = static_cast<uint64_t>(os::kOwnRingMark);
constexpr unsigned kRefuse = SECCOMP_RET_ERRNO | ENOSYS;

sock_filter program[] = {
    load(at(offsetof(seccomp_data, arch))),
    unless_equal(AUDIT_ARCH_X86_64, 8),  // to the last line
    load(at(offsetof(seccomp_data, nr))),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_setup, 5, 0),  // to the refusal
    unless_equal(SYS_io_uring_setup, 5),
    load(kLastArgument),
    unless_equal(static_cast<unsigned>(kRingMark), 2),
    load(kLastArgument + 4),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(kRingMark >> 32), 1, 0),
    answer(kRefuse),
    answer(SECCOMP_RET_ALLOW),
};

bool install() {
  const sock_fprog whole{sizeof program / sizeof program[0], program};
  return real().syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole, 0L, 0L) == 0;
}

// Tries calls that would do nothing. They fail if the kernel does not have them, or if the process
// that started us had installed the filter.
bool is_refused_already() {
  io_uring_params none{};
  return real().syscall(SYS_io_setup, 0L, nullptr) < 0 && errno == ENOSYS &&
         real().syscall(SYS_io_uring_setup, 0L, &none, 0L, 0L, 0L, 0L) < 0 && errno == ENOSYS;
}

}  // namespace

bool refuse_later_writes(std::string* why) {
  const int saved_errno = errno;
  bool is_done = is_refused_already() || install();
  // Without CAP_SYS_ADMIN we must promise the kernel that no program started later gains rights.
  if (!is_done && errno == EACCES)
    is_done = real().syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0 && install();
  if (!is_done)
    *why = std::string("io_uring and aio could not be refused (seccomp: ") +
           ::strerrordesc_np(errno) + ")";
  is_refused.store(is_done);
  errno = saved_errno;
  return is_done;
}

void before_later_writes() {
  if (is_inside() || are_later_writes_refused() || !Door::is_any_taken()) return;
  Door::instance().leave_writable("the program sets up io_uring or aio, which nobody sees");
  // Such transfers may also read mapped memory, to write it elsewhere: with in-thread delivery the
  // kernel would not find its absent pages.
  Door::instance().leave_in_thread("the program sets up io_uring or aio, in-thread");
}

bool are_later_writes_refused() { return is_refused.load(std::memory_order_relaxed); }

}  // namespace outcore::preload
