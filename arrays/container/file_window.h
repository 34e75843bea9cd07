// FileWindow: a part of a file as memory to write to, moved to where it is needed. Writeback: the
// disk begins before all is there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace outcore::arrays {

// Not for several threads.
class FileWindow {
 public:
  // is_dense: most of what it is moved over will be touched: by huge pages, where the filesystem
  // has large folios (512 times fewer faults, and as many fewer pages to write back).
  FileWindow(int fd, bool is_dense, uint64_t file_bytes)
      : fd_(fd), is_dense_(is_dense), file_bytes_(file_bytes) {}
  ~FileWindow() { leave(); }
  FileWindow(const FileWindow&) = delete;
  FileWindow& operator=(const FileWindow&) = delete;

  // So many bytes of the file from offset on are at *at until the next call. 0 or an errno; EIO:
  // the file ends before.
  int reach(uint64_t offset, uint64_t size_bytes, std::byte** at);
  // Its pages of the range are not mapped any more, until they are touched again.
  void let_go(uint64_t offset, uint64_t size_bytes);

 private:
  void leave();

  const int fd_;
  const bool is_dense_;
  const uint64_t file_bytes_;
  std::byte* reserved_ = nullptr;
  uint64_t reserved_bytes_ = 0;
  std::byte* window_ = nullptr;  // at begin_, up to end_
  uint64_t begin_ = 0, end_ = 0;
};

// Who writes ascending offsets through the page cache tells how far it has come; what lies a
// distance behind is written to the disk meanwhile, and what lies twice as far behind leaves
// memory: as much of the page cache as is on its way is used again and again, and what neighbours
// have there stays. The distance lets others who write to the same pages at about the same pace be
// done with them: a page is rarely written twice. What somebody still has mapped stays until he has
// passed.
// One array after the other, too. Any thread: of several that are far apart one is followed.
class Writeback {
 public:
  // `window` is the caller's, through which it writes. 0 or an errno: what was written before has
  // not come to the disk, and the kernel tells only once.
  int have_come_to(int fd, uint64_t offset, FileWindow& window) {
    if (offset < next_.load(std::memory_order_relaxed) &&
        offset >= least_.load(std::memory_order_relaxed))
      return 0;
    return step(fd, offset, window);
  }

 private:
  static constexpr uint64_t kDistanceBytes = 64 << 20;
  static constexpr uint64_t kStepBytes = 16 << 20;
  int step(int fd, uint64_t offset, FileWindow& window);

  std::atomic<uint64_t> next_{0}, least_{0};  // between them there is nothing to do
  std::mutex mutex_;
  uint64_t begun_ = 0;  // up to here the disk has begun
  uint64_t left_ = 0;   // up to here it has left memory
};

}  // namespace outcore::arrays
