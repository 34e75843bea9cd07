// Occupancy: how much of a buffer's limit is used. The kernel knows how many pages are in memory,
// but asking costs a system call. So a thread that brings pages in uses a number that is never too
// low (…_at_most) as long as there is room by that. The fault path; any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/buffer/board.h"
#include "core/buffer/named_file.h"
#include "core/os/word.h"

namespace outcore::buffer {

class Occupancy {
 public:
  // Once, before any other call. REQUIRES: the board is mapped for as long as this is used.
  void open(const Board* board, const NamedFile& frames, int frames_fd, int marks_fd);

  // Pages in the memfd of the frames: asks the kernel.
  uint64_t pages_in_memory() const;
  // Memory of the marks of written pages: asks the kernel, if there are written files.
  uint64_t marks_bytes() const;
  // All that counts against the limit: pages, marks, fills under way, members' own memory.
  uint64_t used_bytes() const;

  // An upper bound of the pages in memory, those of marks included: the kernel's answer of when
  // this process last asked, and what came in since. It is asked again every kTrusted calls.
  uint64_t pages_at_most() const;
  uint64_t used_bytes_at_most() const;

 private:
  static constexpr uint32_t kTrusted = 64;
  uint64_t used_by_members() const;
  template <typename Count>
  uint64_t used_by_all(const Count& count_pages) const;
  uint64_t count_pages(uint64_t* of_frames) const;

  const Board* board_ = nullptr;
  NamedFile frames_;
  int frames_fd_ = -1, marks_fd_ = -1;
  // Pages in memory, and of marks, less Board::filled_pages, when they were last counted.
  mutable os::Word<int64_t> counted_pages_{0};
  mutable os::Word<uint32_t> trusted_{0};  // how often since; 0: not yet
};

}  // namespace outcore::buffer
