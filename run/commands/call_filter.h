// CallFilter: the seccomp filter of the window. It traps (SIGSYS) a system call that points into
// the window, unless it is made by the window's own instruction. This process and all that it
// starts have it until they end; it cannot be taken off.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "outcore/result.h"
#include "run/preload/window_place.h"

namespace outcore::cli {

// A place at random. Errors: what getrandom said.
Result<preload::WindowPlace> choose_window();
// What the kernel runs at each system call: a search by number for the arguments that are pointers,
// then a look at their high halves. REQUIRES: the place is possible.
std::vector<sock_filter> call_filter(const preload::WindowPlace& place);
// Gives it to this process. Without CAP_SYS_ADMIN it promises, too, that no program started later
// gains rights (no_new_privs). Errors: what the kernel said.
Status install_call_filter(const preload::WindowPlace& place);
// A call of this process that points into that window is trapped: whoever started it has installed
// the filter. REQUIRES: one thread.
bool is_call_filter_there(const preload::WindowPlace& place);

}  // namespace outcore::cli
