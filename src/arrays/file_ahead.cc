#include "arrays/file_ahead.h"

#include <sys/mman.h>

#include <algorithm>
#include <exception>

#include "arrays/file_window.h"
#include "os/wait.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14
#endif

namespace outcore::arrays {
namespace {

constexpr uint32_t kThreads = 2;
constexpr uint32_t kDistance = 16;  // huge pages
constexpr uint32_t kEnd = UINT32_MAX;
constexpr uint64_t kSpanMin = 4 * base::kHugePage;
constexpr uint64_t kWaitNs = 100'000'000;  // a wake-up that was missed costs no more

}  // namespace

FileAhead::FileAhead(int fd, uint64_t first, const Runs& runs, uint64_t file_bytes)
    : fd_(fd), first_(first), file_bytes_(file_bytes), runs_(runs) {
  if (runs.span_bytes() < kSpanMin) return;
  const os::SignalBlock block;  // inherited: signals are the program's
  try {
    for (uint32_t number = 0; number < kThreads; ++number)
      threads_.emplace_back([this, number] { walk(number); });
  } catch (const std::exception&) {  // fewer, then
  }
}

FileAhead::~FileAhead() {
  come_.store(kEnd, std::memory_order_relaxed);
  os::wake_all(&come_);
  for (std::thread& thread : threads_) thread.join();
}

void FileAhead::step() {
  if (threads_.empty()) return;
  come_.fetch_add(1, std::memory_order_relaxed);
  os::wake_all(&come_);
}

// Whether the copying is near enough; waits until it is. False: it has ended.
bool FileAhead::may_bring(uint32_t page_count) const {
  for (;;) {
    const uint32_t come = come_.load(std::memory_order_relaxed);
    if (come == kEnd) return false;
    if (page_count <= come + kDistance) return true;
    os::wait(&come_, come, kWaitNs);
  }
}

// Each thread has its share of the huge pages that are touched. Errors are left to who copies.
void FileAhead::walk(uint32_t number) const {
  FileWindow window(fd_, false, true, file_bytes_);
  uint64_t next = 0;  // the first page that was not looked at
  uint32_t page_count = 0;
  static_cast<void>(for_each_run(runs_, [&](uint64_t there, uint64_t) {
    const uint64_t begin = first_ + there;
    const uint64_t last = (begin + runs_.run_bytes - 1) / base::kHugePage;
    for (uint64_t page = std::max(next, begin / base::kHugePage); page <= last; ++page) {
      next = page + 1;
      if (page_count++ % kThreads != number) continue;
      if (!may_bring(page_count)) return true;
      const uint64_t at = page * base::kHugePage;
      if (at >= file_bytes_) return true;
      std::byte* bytes = nullptr;
      const uint64_t size = std::min(base::kHugePage, file_bytes_ - at);
      if (window.reach(at, size, &bytes) != 0) return true;
      if (::madvise(bytes, size, MADV_POPULATE_READ) != 0) return true;
    }
    return false;
  }));
}

}  // namespace outcore::arrays
