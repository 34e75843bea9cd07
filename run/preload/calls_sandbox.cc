// prctl(PR_SET_SECCOMP) and seccomp(): from now on the program restricts its own system calls, and
// so those by which its faults are answered and its bytes are stored. Its files go back to the
// kernel before. See calls.h.
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstdarg>

#include "run/preload/calls.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace outcore::preload {

bool before_sandbox() {
  if (is_inside() || is_borrowing()) return true;
  return is_ready([] { Door::instance().leave_all("the program restricts its system calls"); });
}

}  // namespace outcore::preload

OUTCORE_EXPORT int prctl(int option, ...) noexcept {
  va_list arguments;
  va_start(arguments, option);
  unsigned long w[4];
  for (unsigned long& word : w) word = va_arg(arguments, unsigned long);
  va_end(arguments);
  // Without a filter it only asks whether that can be done, or is refused.
  if (option == PR_SET_SECCOMP && w[1] != 0 && !before_sandbox()) return fail(ENOMEM);
  return static_cast<int>(real().syscall(SYS_prctl, option, w[0], w[1], w[2], w[3]));
}
