#include "core/tests/sim/buffer_kernel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace outcore::sim {

using buffer::kPage;
using os::Piece;

BufferKernel::~BufferKernel() {
  if (frames_ != nullptr) ::munmap(frames_, kPagesMax * kPage);
  if (frames_fd_ >= 0) ::close(frames_fd_);
}

void BufferKernel::open(int frames_fd) {
  frames_fd_ = ::fcntl(frames_fd, F_DUPFD_CLOEXEC, 3);
  void* const at =
      ::mmap(nullptr, kPagesMax * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, frames_fd_, 0);
  if (frames_fd_ < 0 || at == MAP_FAILED) std::abort();
  frames_ = static_cast<std::byte*>(at);
}

bool BufferKernel::is_in(uint64_t frame_page) const {
  const auto at = static_cast<off_t>(frame_page * kPage);
  return ::lseek(frames_fd_, at, SEEK_DATA) == at;
}

std::byte* BufferKernel::bytes_of(uint64_t frame_page) const {
  if (frame_page >= kPagesMax) std::abort();
  return frames_ + frame_page * kPage;
}

void BufferKernel::copy_in(uint64_t frame_page, const std::byte* bytes) {
  if (is_in(frame_page)) return;
  ++incarnation_[frame_page];
  std::memcpy(bytes_of(frame_page), bytes, kPage);
  if (on_page) on_page();
}

bool BufferSimFrames::is_shown(uint64_t page) const {
  return entry_[page].incarnation != 0 && kernel_.is_in(first_ + page) &&
         entry_[page].incarnation == kernel_.incarnation(first_ + page);
}

std::byte* BufferSimFrames::touch(uint64_t page, bool is_write) const {
  const bool can = is_writable_ ? is_shown(page) : kernel_.is_in(first_ + page);
  if (!can || (is_write && (!is_writable_ || entry_[page].is_protected))) return nullptr;
  return kernel_.bytes_of(first_ + page);
}

template <typename F>
void BufferSimFrames::for_each(const Piece& piece, const char* what, const F& f) {
  for (uint64_t at = 0; at < piece.size_bytes; at += kPage) {
    const uint64_t page = (piece.offset + at) / kPage;
    kernel_.fibers.step(what, page);
    if (!f(page, at)) return;
  }
}

int BufferSimFrames::install(const Piece& piece, const std::byte* bytes, bool is_written) {
  kernel_.fibers.require(!is_written, "a buffer's page comes in as written");
  for_each(piece, "copies a page in", [&](uint64_t page, uint64_t at) {
    static const std::byte kZeros[kPage] = {};
    const bool was_in = kernel_.is_in(first_ + page);
    kernel_.copy_in(first_ + page, defect_ == Defect::kInstallsZeros ? kZeros : bytes + at);
    if (is_writable_ && !was_in) entry_[page] = {kernel_.incarnation(first_ + page), true};
    return true;
  });
  return 0;
}

int BufferSimFrames::install_zeros(const Piece& piece, bool is_written) {
  const std::vector<std::byte> zeros(piece.size_bytes);
  return install(piece, zeros.data(), is_written);
}

// As UFFDIO_CONTINUE: what is shown already stays as it is.
int BufferSimFrames::continue_in(const Piece& piece, bool is_protected) {
  int result = 0;
  for_each(piece, is_protected ? "shows a page" : "shows a page to write",
           [&](uint64_t page, uint64_t) {
             if (!kernel_.is_in(first_ + page)) return result = -EFAULT, false;
             if (!is_shown(page)) entry_[page] = {kernel_.incarnation(first_ + page), is_protected};
             return true;
           });
  return result;
}

int BufferSimFrames::allow_write(const Piece& piece) {
  kernel_.fibers.require(piece.is_writable && is_writable_, "a read-only view is written");
  static_cast<void>(continue_in(piece, false));
  for_each(piece, "allows writes", [&](uint64_t page, uint64_t) {
    if (is_shown(page)) entry_[page].is_protected = false;
    return true;
  });
  return 0;
}

int BufferSimFrames::show(const Piece& piece, const os::SubpageSet&) {
  return piece.is_writable ? continue_in(piece, true) : 0;
}

int BufferSimFrames::unmap(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces)
    if (piece.is_writable && defect_ != Defect::kForgetsToProtect)
      for_each(piece, "protects", [&](uint64_t page, uint64_t) {
        entry_[page].is_protected = true;
        return true;
      });
  return 0;
}

}  // namespace outcore::sim
