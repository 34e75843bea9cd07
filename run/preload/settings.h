// Settings: what `outcore run` told this process, by environment. Read once; constant afterwards.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace outcore::preload {

struct Settings {
  std::vector<std::string> map, not_map;  // globs of paths or names; no `map`: every file
  uint64_t min_bytes = uint64_t{64} << 20;
  std::string store = "scratch:";  // where memory of --alloc rests
  uint64_t alloc_bytes = 0;        // allocations of at least this go to scratch; 0: none
  bool allows_aio = false;         // io_uring and aio, beside --alloc
  bool is_explaining = false;
  bool is_quiet = false;
  std::string json;    // where the report goes; empty: nowhere
  pid_t root = 0;      // the process that prints the table
  int report_fd = -1;  // in the process that the run began with, and its descendants
  std::string report;  // path of the memory that processes of this run report in; empty: none
  std::vector<std::string> command;  // of the run, as typed: see report_next.h
  uint64_t patience_s = 30;  // with a store that does not go on, at the end; a test's may be less
  std::string complaint;     // a value that could not be read: one line; nothing is taken then

  bool is_named(const std::string& path) const;     // by --map
  bool is_excluded(const std::string& path) const;  // by --not-map
};

const Settings& settings();

}  // namespace outcore::preload
