// RunningProgram: a program that `outcore run` started, and how it is asked. Each listens on an
// abstract socket "@outcore/<pid>" and answers one line with one. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::cli {

// Those that listen in this network namespace, in the order of their numbers.
std::vector<pid_t> running_programs();

struct Question {
  std::string verb;         // residency, warm, evict
  uint64_t offset = 0;      // of the file, in bytes
  uint64_t size_bytes = 0;  // 0: to its end
  unsigned columns = 0;     // of the answer's bar
  std::string path;         // absolute, on one line
  int wait_ms_max = 2000;   // for the answer; connecting and sending take 2 s at most
};

// What a program answers of a file: its object, checked, or nullopt if it has not taken that file,
// or is gone. Errors: ETIMEDOUT, EPROTO (what it says cannot be read), EIO (what it says).
Result<std::optional<nlohmann::json>> ask(pid_t program, const Question& question);

}  // namespace outcore::cli
