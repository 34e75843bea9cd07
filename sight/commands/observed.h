// Observed: the arguments of `outcore top` and `outcore stat`: which process to look at, and how
// often.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::cli {

// "2", "1.5", "500ms", "1s", "2min". EINVAL: not a time, or not within 50 ms and 1 h.
Result<std::chrono::milliseconds> parse_interval(const std::string& text);

// Finds a process by its number, or by the base name of its program if only one is running. Errors:
// EINVAL (no such number), ENOENT (no such name), ENOTUNIQ (several have it).
Result<pid_t> find_process(const std::string& text);
Result<std::vector<pid_t>> find_processes(const std::vector<std::string>& texts);

enum class Waited : uint8_t {
  kTimePassed,
  kInterrupted,
  kProcessEnded,
  kNoReader  // the reader of our output has gone
};
// Waits until one of these happens. `process_fd`: from pidfd_open(2); `reader_fd`: our output, or
// -1.
Waited wait_for(std::chrono::milliseconds time, int process_fd, int reader_fd);

}  // namespace outcore::cli
