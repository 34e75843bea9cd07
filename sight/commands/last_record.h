// LastRecord: the last counters of a process, as records of its run, for runtimes that ended
// without writing one: by a signal, by _exit(), by exec. One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/json.h"
#include "outcore/buffers.h"
#include "outcore/metrics.h"

namespace outcore::cli {

class LastRecord {
 public:
  explicit LastRecord(pid_t process) : process_(process) {}
  ~LastRecord();
  LastRecord(const LastRecord&) = delete;
  LastRecord& operator=(const LastRecord&) = delete;

  // Reads the process's counters; call it from time to time while the process runs. What is counted
  // after the last call is lost. Files that are unmapped by then are reported as last seen.
  void look();
  bool has_seen_files() const;

  // Call once the process has ended. Makes a record of each runtime that brought in pages and has
  // not written one itself, the oldest first. `recorded`: the start times, in nanoseconds, of those
  // that have. `end`: how the process ended, in words that follow on "The program".
  std::vector<Json> make(const std::string& end, const std::set<uint64_t>& recorded) const;

 private:
  // The last ones, if a process has more of them one after the other.
  static constexpr size_t kRuntimesMax = 16, kFilesMax = 1024;

  struct SeenFile {
    RegionMetrics last;  // as it was seen
    // What was counted before it was mapped again, which counts from nothing.
    Counters before;
    FetchMetrics fetches_before;
    void see(const RegionMetrics& now);
  };
  struct Kept {
    int descriptor = -1;
    bool is_there = true;  // at the last look
    std::vector<std::string> arguments, run_command;
    std::vector<BufferFacts> buffers;             // when its own was last seen
    std::map<std::string, std::string> settings;  // by name, that its environment has
    std::map<std::string, SeenFile> files;        // by URI
  };
  static void see(Kept* kept);
  static std::vector<RegionMetrics> all_files(const std::vector<RegionMetrics>& now,
                                              std::map<std::string, SeenFile> seen);

  const pid_t process_;
  std::vector<Kept> kept_;  // as they came
};

}  // namespace outcore::cli
