// prctl(PR_SET_SECCOMP) and seccomp(): the program restricts its own system calls, and with them
// those by which its faults are answered and its bytes are stored. So its files are handed back to
// the kernel first. See calls.h, sandbox.h.
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>

#include "core/os/cancel_block.h"
#include "core/os/wait.h"
#include "run/preload/calls.h"
#include "run/preload/heap.h"
#include "run/preload/last_store.h"
#include "run/preload/own_threads.h"
#include "run/preload/sandbox.h"
#include "run/preload/watch.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

std::atomic<bool> is_of_all{false};

long make(const SystemCall& call) {
  return real().syscall(call.number, call.a, call.b, call.c, call.d, call.e);
}

// Whether the kernel would refuse any filter. This is tried without one: EFAULT means that nothing
// else is wrong.
bool is_refused(const SystemCall& call) {
  return real().syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, call.b, nullptr) < 0 &&
         errno != EFAULT;
}

// With TSYNC and no listener, a positive result is the thread that could not be restricted.
bool has_succeeded(long result, unsigned long flags) {
  return result == 0 || (result > 0 && (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0);
}

// Installs a filter for all threads, and so for ours. This is the last moment for the report and
// for what was learnt. Our threads are asleep when it comes, none is starting, and they stay
// asleep. After that call we make no system call.
long restrict_all(const SystemCall& call) {
  if (is_refused(call)) return -1;
  LastStore::store_and_report();
  const outcore::os::CancelBlock block;  // the waits here would be cancellation points
  const OwnThreads::NoneStarting none;
  outcore::os::tell_to_rest(true);
  Watch::instance().hang_up();
  static_cast<void>(is_ready(OwnThreads::let_rest));  // without memory it does not wait
  is_of_all.store(true);
  const long result = make(call);
  if (has_succeeded(result, static_cast<unsigned long>(call.b))) {
    Heap::close();
    return result;
  }
  const int error = errno;
  is_of_all.store(false);
  outcore::os::tell_to_rest(false);
  LastStore::resume();
  errno = error;
  return result;
}

}  // namespace

namespace outcore::preload {

bool are_all_restricted() { return is_of_all.load(std::memory_order_relaxed); }

// Heap memory, and files that could not be handed back, still need our threads and our calls: then
// these are not stopped.
long into_sandbox(const SystemCall& call) {
  if (are_all_restricted() || is_inside() || is_borrowing()) return make(call);
  if (!is_ready([] { Door::instance().leave_all("the program restricts its system calls"); }))
    return fail(ENOMEM);
  const bool is_for_all = call.number == SYS_seccomp &&
                          (static_cast<unsigned long>(call.b) & SECCOMP_FILTER_FLAG_TSYNC) != 0;
  if (!is_for_all || Heap::is_used() || Door::is_any_taken()) return make(call);
  return restrict_all(call);
}

}  // namespace outcore::preload

OUTCORE_EXPORT int prctl(int option, ...) noexcept {
  va_list arguments;
  va_start(arguments, option);
  long w[4];
  for (long& word : w) word = va_arg(arguments, long);
  va_end(arguments);
  // Without a filter the call only asks whether it is possible, or it is refused.
  if (option == PR_SET_SECCOMP && w[1] != 0)
    return static_cast<int>(into_sandbox({SYS_prctl, option, w[0], w[1], w[2], w[3]}));
  return static_cast<int>(real().syscall(SYS_prctl, option, w[0], w[1], w[2], w[3]));
}
