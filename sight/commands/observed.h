// Observed: how `outcore top` and `outcore stat` are told which process, and how often.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::cli {

// "2", "1.5", "500ms", "1s", "2min". EINVAL: it is none, or not from 50 ms to 1 h.
Result<std::chrono::milliseconds> parse_interval(const std::string& text);

// The number of a process, or the base name of the program of the only one that is running. Errors:
// EINVAL (no number of a process), ENOENT (no such name), ENOTUNIQ (several have it).
Result<pid_t> find_process(const std::string& text);
Result<std::vector<pid_t>> find_processes(const std::vector<std::string>& texts);

enum class Waited : uint8_t {
  kTimePassed,
  kInterrupted,
  kProcessEnded,
  kNoReader  // nobody will read what is written
};
// Waits that long. `process_fd`: as pidfd_open(2) gives it; `reader_fd`: what is written to, or
// -1.
Waited wait_for(std::chrono::milliseconds time, int process_fd, int reader_fd);

}  // namespace outcore::cli
