// FileAhead: threads that bring what a box touches into the page cache before it is copied.
//
// Who copies short runs waits for the disk at every huge page, and what the kernel reads ahead for
// him meanwhile is little: the disk is asked for more at once by threads that walk over the same
// runs, a distance ahead.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "arrays/box.h"
#include "base/units.h"

namespace outcore::arrays {

class FileAhead {
 public:
  // Both live longer than this; `first` is what Runs::there counts from. Does nothing for what is
  // small, and where threads cannot be had: it is for speed alone.
  FileAhead(int fd, uint64_t first, const Runs& runs, uint64_t file_bytes);
  ~FileAhead();
  FileAhead(const FileAhead&) = delete;
  FileAhead& operator=(const FileAhead&) = delete;

  // Who copies has come to this run. By one thread, in the order of the runs.
  void have_come_to(uint64_t offset) {
    const uint64_t page = offset / base::kHugePage;
    if (page == page_) return;
    page_ = page;
    step();
  }

 private:
  void step();
  void walk(uint32_t number) const;
  bool may_bring(uint32_t page_count) const;

  const int fd_;
  const uint64_t first_, file_bytes_;
  const Runs& runs_;
  std::vector<std::thread> threads_;
  uint64_t page_ = UINT64_MAX;  // where the copying is
  // How many huge pages the copying has come to; kEnd: nobody needs any more.
  mutable std::atomic<uint32_t> come_{0};
};

}  // namespace outcore::arrays
