// Buffers: memory that the processes of a job share. Each page of a file is in it once, whoever
// touches it, and one limit holds for all of them (RuntimeOptions::buffer, `outcore run --buffer`).
//
// Whoever comes first makes a buffer, with its own budget as the limit; it ends with its last
// member. It belongs to one user. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore {

struct BufferFacts {
  std::string name;
  uint64_t limit_bytes = 0;     // of all members together
  uint64_t used_bytes = 0;      // pages, pages on their way in, and what members need beside
  uint64_t resident_bytes = 0;  // pages of files
  pid_t keeping = 0;            // the member that chooses what leaves; 0: not seen from here
  std::vector<pid_t> members;   // 0: in another PID namespace
  uint32_t files = 0;
  uint64_t filled_pages = 0, evicted_pages = 0;  // by the members of now; pages of 4 KiB
  uint32_t takeovers = 0;  // how often another member began to keep, the first included
};

// The buffers of this user that have members, by name. Files that killed members left are removed.
// Errors: those of the folder in which they are found; EPERM (others could get into it).
Result<std::vector<BufferFacts>> list_buffers();

// From now on the limit is another one: what is too much leaves at once, as far as it is not pinned
// or kept by a member for itself. Errors: ENOENT (nobody is in a buffer of this name), EINVAL (the
// name; less than 4 MiB).
Status resize_buffer(const std::string& name, uint64_t limit_bytes);

}  // namespace outcore
