// prctl(PR_SET_SECCOMP) and seccomp(): from now on the program restricts its own system calls, and
// so those by which its faults are answered and its bytes are stored. Its files go back to the
// kernel before. See calls.h, sandbox.h.
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdarg>

#include "run/preload/calls.h"
#include "run/preload/heap.h"
#include "run/preload/last_store.h"
#include "run/preload/own_threads.h"
#include "run/preload/sandbox.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

std::atomic<bool> is_of_thread{false}, is_of_all{false};

// Nothing is asked of the kernel from here to the call, nor after it. Heap memory needs calls of
// ours as before.
long restrict_calls(bool is_for_all, const SystemCall& call) {
  const OwnThreads::NoneStarting none;
  if (is_for_all) OwnThreads::let_rest();
  const long result = real().syscall(call.number, call.a, call.b, call.c, call.d, call.e);
  if (result != 0 || Heap::is_used()) return result;
  is_of_thread.store(true);
  if (is_for_all) is_of_all.store(true);
  return result;
}

}  // namespace

namespace outcore::preload {

bool is_restricted() { return is_of_thread.load(std::memory_order_relaxed); }
bool are_all_restricted() { return is_of_all.load(std::memory_order_relaxed); }

// With our threads restricted, too, this is the last moment for the report and for what was learnt.
long into_sandbox(const SystemCall& call) {
  const bool is_for_all = call.number == SYS_seccomp &&
                          (static_cast<unsigned long>(call.b) & SECCOMP_FILTER_FLAG_TSYNC) != 0;
  if (is_inside() || is_borrowing())
    return real().syscall(call.number, call.a, call.b, call.c, call.d, call.e);
  if (!is_ready([] { Door::instance().leave_all("the program restricts its system calls"); }))
    return fail(ENOMEM);
  Heap::close();
  if (!is_for_all || Heap::is_used()) return restrict_calls(is_for_all, call);
  LastStore::run(LastStore::What::kStoreAndReport);
  const long result = restrict_calls(true, call);
  if (result != 0) LastStore::resume();
  return result;
}

}  // namespace outcore::preload

OUTCORE_EXPORT int prctl(int option, ...) noexcept {
  va_list arguments;
  va_start(arguments, option);
  long w[4];
  for (long& word : w) word = va_arg(arguments, long);
  va_end(arguments);
  // Without a filter it only asks whether that can be done, or is refused.
  if (option == PR_SET_SECCOMP && w[1] != 0)
    return static_cast<int>(into_sandbox({SYS_prctl, option, w[0], w[1], w[2], w[3]}));
  return static_cast<int>(real().syscall(SYS_prctl, option, w[0], w[1], w[2], w[3]));
}
