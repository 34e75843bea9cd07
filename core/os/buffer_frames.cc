#include "core/os/buffer_frames.h"

#include <sys/mman.h>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/memory_file.h"
#include "core/os/uapi.h"
#include "core/os/wait.h"

namespace outcore::os {

std::unique_ptr<Frames> BufferFrames::make(const FaultSource& source, int memfd,
                                           uint64_t base_bytes, bool is_writable) {
  OC_CHECK(memfd >= 0);
  OC_CHECK(base_bytes % base::kSystemPage == 0);
  return std::unique_ptr<Frames>(new BufferFrames(source, memfd, base_bytes, is_writable));
}

Status BufferFrames::attach(const Piece& piece) {
  const int result = map(piece);
  if (result == 0) return {};
  return base::system_error(result, "map a buffer's frames and watch them",
                            "raise vm.max_map_count");
}

// What is only read is never write-protected; but where that is watched, too, the kernel maps no
// neighbours of a page that is touched, and so has fewer to unmap when one leaves.
int BufferFrames::map(const Piece& piece) {
  OC_CHECK(!piece.is_writable || is_writable_);
  Piece placed = piece;
  placed.offset += base_bytes_;
  int result = map_memory_file(memfd_, placed);
  // In a view that may write, pages that others bring in are not mapped by the kernel, which would
  // let them be written: marks of protection do not survive every hole.
  const uint64_t minor = piece.is_writable ? uint64_t{UFFDIO_REGISTER_MODE_MINOR} : 0;
  if (result == 0)
    result = register_range(source_, piece.address, piece.size_bytes,
                            UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP | minor);
  const int protection = PROT_READ | (piece.is_writable ? PROT_WRITE : 0);
  if (result == 0 && ::mprotect(piece.address, piece.size_bytes, protection) != 0) result = -errno;
  return result;
}

int BufferFrames::install(const Piece& piece, const std::byte* bytes, bool is_written) {
  OC_CHECK(!is_written);
  return copy_in(source_, piece.address, bytes, piece.size_bytes, piece.is_writable);
}

int BufferFrames::install_absent(const Piece& piece, const std::byte* bytes,
                                 uint64_t* there_pages) {
  return copy_in(source_, piece.address, bytes, piece.size_bytes, piece.is_writable, there_pages);
}

int BufferFrames::install_zeros(const Piece& piece, bool is_written) {
  OC_CHECK(!is_written);
  return copy_zeros_in(source_, piece.address, piece.size_bytes, piece.is_writable);
}

// What has left memory meanwhile is a fault again.
int BufferFrames::allow_write(const Piece& piece) {
  OC_CHECK(piece.is_writable && is_writable_);
  if (const int result = continue_missing(source_, piece.address, piece.size_bytes, false);
      result != 0 && result != -EFAULT)
    return result;
  return write_protect(source_, piece.address, piece.size_bytes, false);
}

int BufferFrames::show(const Piece& piece, const SubpageSet&) {
  if (!piece.is_writable) return 0;  // the kernel does
  return continue_missing(source_, piece.address, piece.size_bytes, true);
}

int BufferFrames::hide(const Piece& piece) {
  if (!piece.is_writable || piece.size_bytes == 0) return 0;
  return ::madvise(piece.address, piece.size_bytes, MADV_DONTNEED) == 0 ? 0 : -errno;
}

int BufferFrames::unmap(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces)
    if (piece.is_writable)
      if (const int result = write_protect(source_, piece.address, piece.size_bytes, true);
          result != 0)
        return result;
  return 0;
}

int BufferFrames::poison(std::byte* at) {
  unsigned char seen = 0;
  if (is_writable_ && (look_up_presence(at, base::kSystemPage, &seen) != 0 || (seen & 1) != 0))
    return -EEXIST;
  const int result = os::poison(source_, at);
  if (!is_writable_) return result;
  // Somebody may have brought it in just now. Views that only read have no writes to be kept from.
  const int protected_again = write_protect(source_, at, base::kSystemPage, true);
  return result != 0 ? result : protected_again;
}

int BufferFrames::forget_poison(const Piece& piece) {
  if (!source_.has_poison) return source_.nothing >= 0 ? map(piece) : 0;
  return advise_all({&piece, 1}, MADV_DONTNEED, false);
}

void BufferFrames::wake(const Piece& piece) {
  wake_range(source_, piece.address, piece.size_bytes);
}

int look_up_presence(const std::byte* at, uint64_t size_bytes, unsigned char* present) {
  OC_CHECK(size_bytes != 0);
  while (::mincore(const_cast<std::byte*>(at), size_bytes, present) != 0) {
    if (errno != EAGAIN) return -errno;
    yield();
  }
  return 0;
}

}  // namespace outcore::os
