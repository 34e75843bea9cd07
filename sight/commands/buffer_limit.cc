#include "sight/commands/buffer_limit.h"

#include <cerrno>

#include "cli/text.h"
#include "outcore/buffers.h"
#include "sight/commands/process_facts.h"

namespace outcore::cli {

Status check_buffer_limit(const std::string& attempt, uint64_t limit_bytes) {
  const uint64_t machine_bytes = machine_memory_bytes();
  if (machine_bytes == 0 || limit_bytes <= machine_bytes) return {};
  return Error{EINVAL, attempt + ": this machine has " + format_bytes(machine_bytes) +
                           " of memory: name less"};
}

Status set_buffer_limit(const std::string& name, uint64_t limit_bytes) {
  const std::string attempt = "resize the buffer " + name + " to " + format_bytes(limit_bytes);
  if (Status s = check_buffer_limit(attempt, limit_bytes); !s) return s;
  return resize_buffer(name, limit_bytes);
}

}  // namespace outcore::cli
