#include "core/os/buffer_frames.h"

#include <sys/mman.h>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/memory_file.h"
#include "core/os/uapi.h"
#include "core/os/wait.h"

namespace outcore::os {

std::unique_ptr<Frames> BufferFrames::make(const FaultSource& source, int memfd,
                                           uint64_t base_bytes) {
  OC_CHECK(memfd >= 0);
  OC_CHECK(base_bytes % base::kSystemPage == 0);
  return std::unique_ptr<Frames>(new BufferFrames(source, memfd, base_bytes));
}

Status BufferFrames::attach(const Piece& piece) {
  const int result = map(piece);
  if (result == 0) return {};
  return base::system_error(result, "map a buffer's frames and watch them",
                            "raise vm.max_map_count");
}

// Nothing is ever write-protected; but where that is watched, too, the kernel maps no neighbours of
// a page that is touched, and so has fewer to unmap when one leaves.
int BufferFrames::map(const Piece& piece) {
  OC_CHECK(!piece.is_writable);
  Piece placed = piece;
  placed.offset += base_bytes_;
  int result = map_memory_file(memfd_, placed);
  if (result == 0)
    result = register_range(source_, piece.address, piece.size_bytes,
                            UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP);
  if (result == 0 && ::mprotect(piece.address, piece.size_bytes, PROT_READ) != 0) result = -errno;
  return result;
}

int BufferFrames::install(const Piece& piece, const std::byte* bytes, bool is_written) {
  OC_CHECK(!is_written);
  return copy_in(source_, piece.address, bytes, piece.size_bytes, false);
}

int BufferFrames::install_zeros(const Piece& piece, bool is_written) {
  OC_CHECK(!is_written);
  return copy_zeros_in(source_, piece.address, piece.size_bytes, false);
}

int BufferFrames::forget_poison(const Piece& piece) {
  if (source_.has_poison) return advise_all({&piece, 1}, MADV_DONTNEED, false);
  return source_.nothing >= 0 ? map(piece) : 0;
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
