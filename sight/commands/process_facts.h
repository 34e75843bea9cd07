// ProcessFacts: what /proc says of a process beside its counters. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace outcore::cli {

struct ProcessFacts {
  std::string user;        // the number if it has no name
  std::string command;     // its command line, on one line
  std::string name;        // the base name of the file that it runs, as in the table of a run
  std::string called;      // by which name it was started: of a link, say; else the same
  uint64_t started = 0;    // in ticks of the system: numbers of processes are used again
  double cpu_seconds = 0;  // of all its threads
  uint64_t rss_bytes = 0;
};

// What of it can be read: the rest stays as it is when the process ends meanwhile.
ProcessFacts facts_of(pid_t process);
// The texts of /proc/PID/cmdline or environ, as they were given; none if they may not be read.
std::vector<std::string> proc_texts(pid_t process, const char* file);
// 0: nobody knows.
uint64_t machine_memory_bytes();

}  // namespace outcore::cli
