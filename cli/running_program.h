// RunningProgram: a program that `outcore run` started, and how it is asked. Each listens on an
// abstract socket "@outcore/<pid>" and answers one line with one. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace outcore::cli {

// Those that listen in this network namespace, in the order of their numbers.
std::vector<pid_t> running_programs();

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
  pid_t program = 0;
  Kind kind = Kind::kNone;
  nlohmann::json answer;
  std::string why;
};

// Asks all at once, so that those who do not answer cost no more time than one. In the order of
// `programs`.
std::vector<Reply> ask(const std::vector<pid_t>& programs, const Question& question);

}  // namespace outcore::cli
