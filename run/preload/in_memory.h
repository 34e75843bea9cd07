// InMemory: files that their filesystem keeps in memory, which are never taken.
#pragma once

#include <sys/stat.h>

namespace outcore::preload {

// Whether the descriptor, of which `about` tells, is such a file. Not a block device, whose node
// lies in such a filesystem. Any thread; changes errno.
bool is_kept_in_memory(int fd, const struct stat& about);

}  // namespace outcore::preload
