#include "core/os/kernel_text.h"

#include <fcntl.h>
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
  if (fd_ >= 0)
    ParentsDescriptors::add(fd_);
  else
    error_ = opened < 0 ? -opened : errno;
  OC_CHECK(is_open() == (error_ == 0));
}

KernelText::KernelText(KernelText&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), error_(std::exchange(other.error_, 0)) {}

KernelText& KernelText::operator=(KernelText&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(error_, other.error_);
  return *this;
}

KernelText::~KernelText() {
  if (fd_ >= 0) ParentsDescriptors::close(fd_);
}

std::string_view KernelText::read(std::span<char> buffer) const {
  OC_CHECK(!buffer.empty());
  if (fd_ < 0) return {};
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
