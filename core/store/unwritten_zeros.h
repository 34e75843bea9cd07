// UnwrittenZeros: helpers for stores whose space is undefined until it is written: a WrittenMap
// says where it was; the rest reads as zeros, without I/O. The fault path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/units.h"
#include "core/store/written_map.h"
#include "outcore/store.h"

namespace outcore::store {

// Reads what was written by read(offset, bytes), and the rest as zeros. 0, or the error of read().
template <typename Read>
int read_written(const WrittenMap& written, uint64_t offset, std::span<std::byte> into,
                 const Read& read) {
  const uint64_t end = offset + into.size(), unit_bytes = written.unit_bytes();
  for (uint64_t at = offset, next; at < end; at = next) {
    // Asked once: pages of others, in the gaps of a read of many, change meanwhile.
    const bool is_there = written.is_written(at);
    next = base::round_down(at, unit_bytes) + unit_bytes;
    while (next < end && written.is_written(next) == is_there) next += unit_bytes;
    next = std::min(next, end);
    const std::span<std::byte> part = into.subspan(at - offset, next - at);
    if (!is_there)
      std::fill(part.begin(), part.end(), std::byte{0});
    else if (const int error = read(at, part); error != 0)
      return error;
  }
  return 0;
}

// Passes neighbouring requests for which is_plain(request) is true together to transfer(requests).
// The others are answered one by one: the value of answer(request) becomes their result.
template <typename IsPlain, typename Transfer, typename Answer>
void transfer_plain(std::span<StoreRequest> batch, const IsPlain& is_plain,
                    const Transfer& transfer, const Answer& answer) {
  for (size_t i = 0; i < batch.size();) {
    size_t end = i;
    while (end < batch.size() && is_plain(batch[end])) ++end;
    if (end > i) transfer(batch.subspan(i, end - i));
    for (; end < batch.size() && !is_plain(batch[end]); ++end)
      batch[end].result = answer(batch[end]);
    i = end;
  }
}

}  // namespace outcore::store
