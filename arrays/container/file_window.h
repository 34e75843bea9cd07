// FileWindow: a mapping of a part of a file for writing, which is moved to where it is needed.
// Writeback: starts to write a file to the disk before all of it has been written to the page
// cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace outcore::arrays {

// One thread.
class FileWindow {
 public:
  // is_dense: most pages of each part will be touched. Then huge pages are used where the
  // filesystem has large folios: 512 times fewer faults, and as many fewer pages to write back.
  FileWindow(int fd, bool is_dense, uint64_t file_bytes)
      : fd_(fd), is_dense_(is_dense), file_bytes_(file_bytes) {}
  ~FileWindow() { unmap_all(); }
  FileWindow(const FileWindow&) = delete;
  FileWindow& operator=(const FileWindow&) = delete;

  // Makes so many bytes of the file from `offset` on available at *at, until the next call. 0 or an
  // errno; EIO: the file ends before.
  int reach(uint64_t offset, uint64_t size_bytes, std::byte** at);
  // Unmaps its pages of the range; a touch maps them again.
  void unmap(uint64_t offset, uint64_t size_bytes);

 private:
  void unmap_all();

  const int fd_;
  const bool is_dense_;
  const uint64_t file_bytes_;
  std::byte* reserved_ = nullptr;
  uint64_t reserved_bytes_ = 0;
  std::byte* window_ = nullptr;  // maps the file from begin_ to end_
  uint64_t begin_ = 0, end_ = 0;
};

// A thread that writes ascending offsets through the page cache reports how far it has come. Bytes
// that lie a distance behind are then written to the disk, and bytes that lie twice as far behind
// are dropped from the page cache. So the file uses a bounded part of the page cache again and
// again, and the pages of other programs stay there. The distance is long enough for others who
// write to the same pages at about the same pace: a page is rarely written twice. A page that
// somebody still has mapped stays.
//
// It follows one array after the other. Any thread: if several write far apart, it follows one.
class Writeback {
 public:
  // `window` is the one through which the caller writes. 0 or an errno: earlier bytes did not reach
  // the disk, which the kernel reports only once.
  int note_written(int fd, uint64_t offset, FileWindow& window) {
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
  uint64_t begun_ = 0;  // the disk has begun to write up to here
  uint64_t left_ = 0;   // dropped from the page cache up to here
};

}  // namespace outcore::arrays
