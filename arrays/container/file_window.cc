#include "arrays/container/file_window.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::arrays {
namespace {

constexpr uint64_t kReachBytes = uint64_t{1} << 36;  // mapped at a time

}  // namespace

int FileWindow::reach(uint64_t offset, uint64_t size_bytes, std::byte** at) {
  const uint64_t to = offset + size_bytes;
  if (to > file_bytes_) return EIO;
  if (window_ == nullptr || offset < begin_ || to > end_) {
    unmap_all();
    // Huge pages are aligned, in the file and in memory.
    const uint64_t begin =
        base::round_down(offset, is_dense_ ? base::kHugePage : base::kSystemPage);
    const uint64_t end =
        std::min(begin + std::max(kReachBytes, base::round_up(to - begin, base::kHugePage)),
                 base::round_up(file_bytes_, base::kSystemPage));
    const uint64_t size = end - begin;
    void* const space = ::mmap(nullptr, size + base::kHugePage, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) return errno;
    reserved_ = static_cast<std::byte*>(space);
    reserved_bytes_ = size + base::kHugePage;
    auto* const place = reinterpret_cast<std::byte*>(
        base::round_up(reinterpret_cast<uintptr_t>(reserved_), base::kHugePage));
    void* const made = ::mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_,
                              static_cast<off_t>(begin));
    if (made == MAP_FAILED) {
      const int error = errno;
      unmap_all();
      return error;
    }
    if (is_dense_) static_cast<void>(::madvise(made, size, MADV_HUGEPAGE));
    window_ = place;
    begin_ = begin;
    end_ = end;
  }
  OC_CHECK(begin_ <= offset && to <= end_);
  *at = window_ + (offset - begin_);
  return 0;
}

void FileWindow::unmap_all() {
  if (reserved_ != nullptr) ::munmap(reserved_, reserved_bytes_);
  reserved_ = window_ = nullptr;
}

void FileWindow::unmap(uint64_t offset, uint64_t size_bytes) {
  const uint64_t from = std::max(offset, begin_), to = std::min(offset + size_bytes, end_);
  if (window_ == nullptr || from >= to) return;
  static_cast<void>(::madvise(window_ + (from - begin_), to - from, MADV_DONTNEED));
}

int Writeback::step(int fd, uint64_t offset, FileWindow& window) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return 0;
  OC_ASSERT(left_ <= begun_);
  const auto call = [&](uint64_t at, unsigned flags) {
    const int result =
        ::sync_file_range(fd, static_cast<off_t>(at), static_cast<off_t>(kStepBytes), flags);
    return result == 0 || errno == EINTR ? 0 : errno;
  };
  constexpr uint64_t kBehind = kDistanceBytes + kStepBytes;
  if (offset < least_ || offset >= begun_ + 2 * kBehind) {  // elsewhere; steps are as all others'
    begun_ = left_ = offset / kStepBytes * kStepBytes;
  } else if (offset >= begun_ + kBehind) {
    if (const int error = call(begun_, SYNC_FILE_RANGE_WRITE); error != 0) return error;
    begun_ += kStepBytes;
    if (begun_ >= left_ + kBehind) {
      // Its writing began long ago. An error is reported here, and not again by fdatasync.
      if (const int error = call(left_, SYNC_FILE_RANGE_WAIT_BEFORE); error != 0) return error;
      window.unmap(left_, kStepBytes);
      static_cast<void>(::posix_fadvise(fd, static_cast<off_t>(left_),
                                        static_cast<off_t>(kStepBytes), POSIX_FADV_DONTNEED));
      left_ += kStepBytes;
    }
  }
  next_ = begun_ + kBehind;
  least_ = begun_ - std::min(begun_, 2 * kBehind);
  return 0;
}

}  // namespace outcore::arrays
