// KeptDescriptor: a descriptor that outlives exec, where programs do not look for theirs.
#pragma once

namespace outcore::cli {

// Moves `fd` to a high number, as far as the limit of open files lets, without CLOEXEC. Returns
// where it is now.
int keep_descriptor(int fd);

}  // namespace outcore::cli
