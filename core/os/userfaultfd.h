// Userfaultfd: opens the kernel's notification of faults. Any thread; not on the fault path.
#pragma once

#include <cstdint>

#include "outcore/result.h"

namespace outcore::os {

// Opens a userfaultfd (O_CLOEXEC, O_NONBLOCK) on which UFFDIO_API has granted `features`; the
// caller closes it. Without `needs_kernel_faults` it reports faults in user mode only, which every
// process is allowed: by the system call or, where that is refused, by /dev/userfaultfd. With it,
// it also reports faults inside system calls: it tries /dev/userfaultfd, then the system call,
// which needs CAP_SYS_PTRACE or the sysctl. Errors, each with its remedy: EPERM and EACCES (not
// allowed), ENOSYS (blocked, or not in this kernel), EINVAL (the kernel lacks a feature), EMFILE.
Result<int> open_userfaultfd(uint64_t features, bool needs_kernel_faults);

}  // namespace outcore::os
