// RunningProgram: a program that `outcore run` started, and how it is asked. Each listens on an
// abstract socket "@outcore/<pid>.<chance>" and answers one line with one. The number is that of
// its PID namespace; what chance adds nobody can take before it. Any thread.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/json.h"

namespace outcore::cli {

struct RunningProgram {
  pid_t pid = 0;
  std::string name;  // of its socket: "<pid>.<chance>"
  auto operator<=>(const RunningProgram&) const = default;
};
// Those that listen in this network namespace, in the order of their numbers.
std::vector<RunningProgram> running_programs();

struct Question {
  std::string verb;         // residency, warm, evict
  uint64_t offset = 0;      // of the file, in bytes
  uint64_t size_bytes = 0;  // 0: to its end
  unsigned columns = 0;     // of the answer's bar
  std::string path;         // absolute, on one line
  int wait_ms_max = 2000;   // for the answers; nothing else is waited for
};

// What became of a question.
struct Reply {
  enum class Kind : uint8_t {
    kTaken,    // it has taken the file, and `answer` is what it says of it: its object, checked
    kNone,     // it has not
    kSkipped,  // it did not answer; `why`, as in "sort (pid 12): another user's; ask as root"
    kUndone    // it could not do it; `why`, as it says
  };
  RunningProgram program;
  Kind kind = Kind::kNone;
  Json answer;
  std::string why;
};

// Asks all at once, so that those who do not answer cost no more time than one. In the order of
// `programs`. Those of other users are asked, and believed, by root alone.
std::vector<Reply> ask(const std::vector<RunningProgram>& programs, const Question& question);

}  // namespace outcore::cli
