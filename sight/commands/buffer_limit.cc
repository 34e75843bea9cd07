#include "sight/commands/buffer_limit.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cli/text.h"
#include "outcore/buffers.h"

namespace outcore::cli {

Status set_buffer_limit(const std::string& name, uint64_t limit_bytes) {
  const auto machine_bytes = static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES))) *
                             static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (machine_bytes != 0 && limit_bytes > machine_bytes)
    return Error{EINVAL, "resize the buffer " + name + " to " + format_bytes(limit_bytes) +
                             ": this machine has " + format_bytes(machine_bytes) +
                             " of memory: name less"};
  return resize_buffer(name, limit_bytes);
}

}  // namespace outcore::cli
