// LastRecord: what a process had counted when it ended, as records of its run, for runtimes that
// ended without writing one: by a signal, by _exit(), by becoming another program. One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cli/json.h"
#include "outcore/buffers.h"

namespace outcore::cli {

class LastRecord {
 public:
  explicit LastRecord(pid_t process) : process_(process) {}
  ~LastRecord();
  LastRecord(const LastRecord&) = delete;
  LastRecord& operator=(const LastRecord&) = delete;

  // From time to time while it runs. What a runtime counts until then is lost if the process ends
  // before it is seen.
  void look();
  bool has_seen() const { return !kept_.empty(); }

  // Once the process has ended: a record of each runtime that brought in something, and is none
  // of `recorded` (when it was started, in nanoseconds, which its own record has, too); the oldest
  // first. `end`: how the process ended, in words that follow on "The program".
  std::vector<Json> make(const std::string& end, const std::set<uint64_t>& recorded) const;

 private:
  // The last ones, if a process has more of them one after the other.
  static constexpr size_t kRuntimesMax = 16;

  struct Kept {
    int descriptor = -1;
    bool is_there = true;  // at the last look
    std::vector<std::string> arguments, run_command;
    std::vector<BufferFacts> buffers;  // when its own was last seen
  };

  const pid_t process_;
  std::vector<Kept> kept_;  // as they came
};

}  // namespace outcore::cli
