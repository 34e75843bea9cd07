// BufferLimit: another limit for a buffer, as people type it. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "outcore/result.h"

namespace outcore::cli {

// Errors: EINVAL (more than the machine has: `attempt` cannot be done).
Status check_buffer_limit(const std::string& attempt, uint64_t limit_bytes);
// Errors: EINVAL (more than the machine has: a slip, which would end with its memory); those of
// resize_buffer().
Status set_buffer_limit(const std::string& name, uint64_t limit_bytes);

}  // namespace outcore::cli
