// Piece: the part of a transfer that one system call carries out. PieceSource: cuts transfers into
// pieces.
//
// A request of any offset and size becomes pieces: the aligned part for the direct descriptor, the
// rest for the buffered one; a sparse store also cuts at segments. All stores share one loop, which
// handles short transfers, EINTR and refused direct transfers.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "outcore/store.h"

namespace outcore::store {

struct Piece {
  int fd = -1;  // -1: nothing is stored there; it reads zero
  uint64_t offset = 0;
  size_t size_bytes = 0;
  bool is_direct = false;
  int ticket = -1;  // for the source
};

// The maximum of one transfer: the kernel cuts at 2 GiB less a page, and a ring counts in 32 bits.
inline constexpr size_t kPieceBytesMax = size_t{1} << 30;
// Offsets, sizes and memory of direct transfers are multiples of this.
inline constexpr uint64_t kDirectAlignment = 4096;

class PieceSource {
 public:
  // Sets `piece` to the piece of `request` that starts `done_bytes` into it. 0; or -errno, and then
  // release() is not called. REQUIRES: done_bytes < request.size_bytes. The fault path: no lock, no
  // allocation.
  virtual int next_piece(const StoreRequest& request, size_t done_bytes, Piece& piece) = 0;
  // The piece was carried out, with or without success.
  virtual void release(const Piece& piece) { (void)piece; }
  // The filesystem refused a direct transfer: use no more of them.
  virtual void refuse_direct() = 0;

 protected:
  ~PieceSource() = default;
};

// True if the rest of a request may begin with a direct piece.
bool is_direct_aligned(uint64_t offset, const std::byte* bytes, size_t size_bytes);

// Notes the outcome of a piece (bytes, or -errno). 0: continue at `done_bytes`; otherwise the
// request has failed.
int book_piece(PieceSource& source, const Piece& piece, ssize_t outcome, size_t& done_bytes);

// Carries out the rest of a request in the calling thread. 0 or -errno. The fault path.
int carry_out(PieceSource& source, const StoreRequest& request, size_t done_bytes = 0);

}  // namespace outcore::store
