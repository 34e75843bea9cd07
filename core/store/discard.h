// Discard: makes a range read zero: as a hole if the file can have one, otherwise by writing zeros.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/file_calls.h"
#include "core/store/io_piece.h"

namespace outcore::store {

// What a discarded range becomes: a hole, or space that stays reserved.
enum class DiscardMode : uint8_t { kHole, kKeepSpace };

// Writes zeros by write(offset, bytes), in aligned pieces of bounded size. 0 or the first error.
template <typename Write>
int write_zeros(uint64_t offset, uint64_t size_bytes, Write write) {
  static constexpr size_t kPieceBytes = 64 << 10;
  alignas(kDirectAlignment) static const std::byte zeros[kPieceBytes] = {};
  while (size_bytes > 0) {
    const uint64_t piece = std::min<uint64_t>(size_bytes, kPieceBytes - offset % kDirectAlignment);
    OC_CHECK(piece != 0);
    const int error = write(offset, std::span(zeros, static_cast<size_t>(piece)));
    OC_ASSERT(error <= 0);
    if (error != 0) return error;
    offset += piece;
    size_bytes -= piece;
  }
  return 0;
}

// Frees a range of a file, in whole system pages. 0 or -errno: not every filesystem and device can.
inline int free_blocks(int fd, uint64_t offset, uint64_t size_bytes, DiscardMode mode) {
  OC_ASSERT(fd >= 0);
  OC_ASSERT(size_bytes != 0);
  const int how = mode == DiscardMode::kHole ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE;
  return os::repeat([&] {
    return ::fallocate(fd, how | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(size_bytes));
  });
}

// Makes a range read zero: with free(offset, size) for whole system pages, and with zero(offset,
// size) for the rest, or for everything if free() fails. 0 or the error of zero().
template <typename Zero, typename Free>
int discard_range(uint64_t offset, uint64_t size_bytes, Zero zero, Free free) {
  const uint64_t end = offset + size_bytes;
  OC_CHECK(end >= offset);
  const uint64_t first = base::round_up(offset, base::kSystemPage);
  const uint64_t last = base::round_down(end, base::kSystemPage);
  if (first >= last) return zero(offset, size_bytes);
  int error = zero(offset, first - offset);
  if (error == 0) error = zero(last, end - last);
  if (error != 0 || free(first, last - first) == 0) return error;
  return zero(first, last - first);
}

}  // namespace outcore::store
