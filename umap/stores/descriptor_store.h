// DescriptorStore: the store of a file that the program has open.
#pragma once

#include <cstdint>
#include <memory>

#include "outcore/result.h"
#include "outcore/store.h"

namespace outcore::umapped {

// Opens the file anew, so that the program may close its descriptor, and so that direct I/O is
// Outcore's own choice. The store has at least `end_bytes`: those past the end of the file read
// zero, and make it longer when they are written (TailStore). Errors: EBADF; ENODEV (neither a
// regular file nor a block device); EACCES (the descriptor is not open for reading, or not for
// writing); those of opening.
Result<std::shared_ptr<Store>> open_descriptor(int fd, bool is_writable, uint64_t end_bytes);

}  // namespace outcore::umapped
