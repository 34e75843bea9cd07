// Userfaultfd: opens the kernel's way to hear of faults. Any thread; not on the fault path.
#pragma once

#include <cstdint>

#include "outcore/result.h"

namespace outcore::os {

// A userfaultfd (O_CLOEXEC, O_NONBLOCK) on which UFFDIO_API has granted `features`; the caller
// closes it. Without `needs_kernel_faults` it hears only of faults in user mode, which every
// process may ask for: by the system call, or where that is refused by /dev/userfaultfd. With it,
// faults inside system calls too: /dev/userfaultfd is tried, then the system call, which wants
// CAP_SYS_PTRACE or the sysctl. Errors, each with its remedy: EPERM and EACCES (not allowed),
// ENOSYS (blocked, or not in this kernel), EINVAL (the kernel lacks one of the features), EMFILE.
Result<int> open_userfaultfd(uint64_t features, bool needs_kernel_faults);

}  // namespace outcore::os
