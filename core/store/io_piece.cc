#include "core/store/io_piece.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/assert.h"

namespace outcore::store {

bool is_direct_aligned(uint64_t offset, const std::byte* bytes, size_t size_bytes) {
  return (offset | reinterpret_cast<uintptr_t>(bytes)) % kDirectAlignment == 0 &&
         size_bytes >= kDirectAlignment;
}

int book_piece(PieceSource& source, const Piece& piece, ssize_t outcome, size_t& done_bytes) {
  OC_CHECK(outcome <= static_cast<ssize_t>(piece.size_bytes));
  if (outcome == -EINTR) return 0;
  if (outcome == -EINVAL && piece.is_direct) {
    source.refuse_direct();
    return 0;
  }
  if (outcome < 0) return static_cast<int>(outcome);
  if (outcome == 0)
    return -EIO;  // the file was cut short meanwhile, or writes nothing without saying why
  done_bytes += static_cast<size_t>(outcome);
  return 0;
}

int carry_out(PieceSource& source, const StoreRequest& request, size_t done_bytes) {
  while (done_bytes < request.size_bytes) {
    Piece piece;
    if (const int error = source.next_piece(request, done_bytes, piece); error != 0) return error;
    OC_CHECK(piece.size_bytes != 0);
    OC_CHECK(piece.size_bytes <= request.size_bytes - done_bytes);
    OC_ASSERT(!piece.is_direct || piece.offset % kDirectAlignment == 0);
    OC_ASSERT(!piece.is_direct || piece.size_bytes % kDirectAlignment == 0);
    std::byte* const bytes = request.bytes + done_bytes;
    ssize_t outcome = 0;
    if (piece.fd < 0) {
      std::memset(bytes, 0, piece.size_bytes);
      outcome = static_cast<ssize_t>(piece.size_bytes);
    } else {
      const auto at = static_cast<off_t>(piece.offset);
      outcome = request.is_write ? ::pwrite(piece.fd, bytes, piece.size_bytes, at)
                                 : ::pread(piece.fd, bytes, piece.size_bytes, at);
      if (outcome < 0) outcome = -errno;
    }
    source.release(piece);
    const int error = book_piece(source, piece, outcome, done_bytes);
    if (error != 0) return error;
  }
  return 0;
}

}  // namespace outcore::store
