// Report: what of a process went through Outcore, and what did not, and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "outcore/metrics.h"

namespace outcore::preload {

struct FileReport {
  std::string path, remark;
  uint64_t file_bytes = 0, mapped_bytes = 0;
  Counters counters;
  bool is_taken = true;  // now, or until the process ended
};

// NotTaken: mappings that stayed with the kernel. A bounded list; each reason is listed once for a
// file.
class NotTaken {
 public:
  static constexpr size_t kEntriesMax = 256;
  struct Entry {
    std::string path, reason;
    uint64_t size_bytes = 0, count = 0;
  };
  // False: it was listed already, or there is no room.
  bool add(const std::string& path, uint64_t size_bytes, const std::string& reason);
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

// What --learn has done.
struct LearnReport {
  std::string profile;                              // its path; empty: none
  uint64_t brought_bytes = 0, runs = 0, files = 0;  // brought in ahead, and of how many files
  bool is_kept = false;
};

struct Report {
  std::string program;
  int pid = 0;
  std::string delivery;
  uint64_t budget_bytes = 0, peak_bytes = 0, page_bytes = 0;
  uint64_t alloc_bytes_max = 0, allocations = 0;
  std::vector<FileReport> files;
  std::vector<NotTaken::Entry> not_taken;
  LearnReport learn;

  bool is_empty() const { return files.empty() && not_taken.empty() && allocations == 0; }
  std::string to_json() const;  // one object on one line
};

// At the end of the process: adds its report to those of the run. The process with which the run
// began also prints the table and writes the JSON.
void publish(const Report& report);

}  // namespace outcore::preload
