// Settings: what `outcore run` tells this process in its environment. Read once, then constant.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace outcore::preload {

struct Settings {
  std::vector<std::string> map, not_map;  // patterns of paths or names; no `map`: every file
  uint64_t min_bytes = uint64_t{64} << 20;
  std::string store = "scratch:";  // where memory of --alloc rests
  uint64_t alloc_bytes = 0;        // allocations of at least this size lie on scratch; 0: none
  bool allows_aio = false;         // io_uring and aio are allowed beside --alloc
  bool shares_writes = false;      // what several processes write is shared in a buffer, too
  bool is_explaining = false;
  bool is_quiet = false;
  std::string json;    // where the report goes; empty: nowhere
  pid_t root = 0;      // the process that prints the table
  int report_fd = -1;  // for the process with which the run began, and its descendants
  // What the processes that the first one starts share by default; empty: nothing.
  std::string buffer;
  std::string report;  // the memory in which processes of this run report; empty: none
  std::vector<std::string> command;  // of the run, as it was typed: see report_next.h
  uint64_t patience_s = 30;  // how long a store may stand still at the end; shorter in tests
  // The program is one of Go (GoProgram): nothing is taken, neither files nor allocations.
  bool is_go = false;
  std::string complaint;  // one line about a value that cannot be parsed: then nothing is taken

  bool is_named(const std::string& path) const;     // by --map
  bool is_excluded(const std::string& path) const;  // by --not-map
};

const Settings& settings();

}  // namespace outcore::preload
