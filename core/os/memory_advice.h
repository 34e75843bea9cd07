// Memory advice on many ranges at once: DI-MMAP's bulk TLB eviction, on a stock kernel.
#pragma once

#include <span>

#include "core/os/frames.h"

namespace outcore::os {

// madvise(advice) for every piece, which are sorted by address; neighbours are joined, to
// 1 MiB at most, and where the kernel has it (process_madvise on oneself, about Linux 6.13) 128
// ranges go in one call. 0 or -errno. The fault path.
int advise_all(std::span<const Piece> pieces, int advice, bool has_batched_advice);

// Ends mlock and mlockall for the piece, which would keep its pages from leaving.
void unlock_range(const Piece& piece);

}  // namespace outcore::os
