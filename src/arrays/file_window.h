// FileWindow: a part of a file as memory, moved to where it is needed. Writeback: the disk begins
// before all is there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outcore::arrays {

// Not for several threads.
class FileWindow {
 public:
  // is_dense: most of what it is moved over will be touched: by huge pages, where the filesystem
  // has large folios (512 times fewer faults, and as many fewer pages to write back).
  FileWindow(int fd, bool is_writable, bool is_dense, uint64_t file_bytes)
      : fd_(fd), is_writable_(is_writable), is_dense_(is_dense), file_bytes_(file_bytes) {}
  ~FileWindow() { leave(); }
  FileWindow(const FileWindow&) = delete;
  FileWindow& operator=(const FileWindow&) = delete;

  // So many bytes of the file from offset on are at *at until the next call. 0 or an errno; EIO:
  // the file ends before.
  int reach(uint64_t offset, uint64_t size_bytes, std::byte** at);

 private:
  void leave();

  const int fd_;
  const bool is_writable_, is_dense_;
  const uint64_t file_bytes_;
  std::byte* reserved_ = nullptr;
  uint64_t reserved_bytes_ = 0;
  std::byte* window_ = nullptr;  // at begin_, up to end_
  uint64_t begin_ = 0, end_ = 0;
};

// Who writes ascending offsets through the page cache tells how far it has come; what lies a
// distance behind is written to the disk meanwhile. The distance lets others who write to the same
// pages at about the same pace be done with them: a page is rarely written twice.
class Writeback {
 public:
  Writeback(int fd, bool is_on, uint64_t offset)
      : fd_(fd), is_on_(is_on), begun_(offset / kStepBytes * kStepBytes) {}  // as all others' steps
  void have_come_to(uint64_t offset) {
    if (is_on_ && offset >= begun_ + kDistanceBytes + kStepBytes) begin();
  }

 private:
  static constexpr uint64_t kDistanceBytes = 128 << 20;
  static constexpr uint64_t kStepBytes = 16 << 20;
  void begin();

  const int fd_;
  const bool is_on_;
  uint64_t begun_;
};

}  // namespace outcore::arrays
