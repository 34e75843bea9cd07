#include "core/os/kernel_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "core/base/assert.h"
#include "core/os/descriptor_place.h"
#include "core/os/file_calls.h"
#include "core/os/parents_descriptors.h"

namespace outcore::os {

KernelText::KernelText(const std::string& path) {
  OC_CHECK(!path.empty());
  const int opened = repeat([&path] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  fd_ = above_standard(opened);
  if (fd_ < 0) error_ = opened < 0 ? -opened : errno;
  struct stat file = {};
  if (fd_ >= 0 && ::fstat(fd_, &file) != 0) {
    error_ = errno;
    ::close(std::exchange(fd_, -1));
  }
  device_ = file.st_dev;
  inode_ = file.st_ino;
  if (fd_ >= 0) ParentsDescriptors::add(fd_);
  OC_CHECK(is_open() == (error_ == 0));
}

KernelText::KernelText(KernelText&& other) noexcept { *this = std::move(other); }

KernelText& KernelText::operator=(KernelText&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(error_, other.error_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

KernelText::~KernelText() {
  if (fd_ < 0) return;
  if (has_file())
    ParentsDescriptors::close(fd_);
  else
    ParentsDescriptors::forget(fd_);
}

// The descriptor's number is still ours.
bool KernelText::has_file() const {
  struct stat file = {};
  return ::fstat(fd_, &file) == 0 && file.st_dev == device_ && file.st_ino == inode_;
}

std::string_view KernelText::read(std::span<char> buffer) const {
  OC_CHECK(!buffer.empty());
  if (fd_ < 0 || !has_file()) return {};
  // These files have one record, which the kernel makes anew at offset 0 and hands out whole.
  const ssize_t n = repeat([&] { return ::pread(fd_, buffer.data(), buffer.size(), 0); });
  OC_CHECK(n <= static_cast<ssize_t>(buffer.size()));
  return n <= 0 ? std::string_view() : std::string_view(buffer.data(), static_cast<size_t>(n));
}

std::optional<uint64_t> number_at_start(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  OC_ASSERT(end <= text.data() + text.size());
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<uint64_t> number_behind(std::string_view text, std::string_view key) {
  OC_CHECK(!key.empty());
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    const size_t blanks = std::min(line.find_first_not_of(" \t"), line.size());
    if (blanks == 0) continue;  // a longer word
    line.remove_prefix(blanks);
    if (const auto number = number_at_start(line); number) return number;
  }
  return std::nullopt;
}

}  // namespace outcore::os
