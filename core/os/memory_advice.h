// Memory advice on many ranges at once: the bulk TLB eviction of DI-MMAP, on an unmodified kernel.
#pragma once

#include <span>

#include "core/os/frames.h"

namespace outcore::os {

// Calls madvise(advice) for all pieces, which are sorted by address. Neighbours are joined, to 1
// MiB at most, and if the kernel has process_madvise for the own process (about Linux 6.13), one
// call takes 128 ranges. 0 or -errno. The fault path.
int advise_all(std::span<const Piece> pieces, int advice, bool has_batched_advice);

// Undoes mlock and mlockall for the piece, which would keep its pages from being evicted.
void unlock_range(const Piece& piece);

}  // namespace outcore::os
