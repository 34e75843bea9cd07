// Memory file: the memfd of shared and protected frames. Any thread.
#pragma once

#include <cstdint>
#include <span>

#include "core/os/frames.h"
#include "outcore/result.h"

namespace outcore::os {

// `name` is seen in /proc/PID/fd and in maps. `is_sealed`: nobody can change its size any more, who
// would end everybody that maps it.
Result<int> make_memory_file(uint64_t size_bytes, const char* name = "outcore-frames",
                             bool is_sealed = false);
// Maps the piece, inaccessible, in place of reserved addresses; forked children do not inherit it.
// 0 or -errno.
int map_memory_file(int memfd, const Piece& piece);
// Frees the memory of the pieces' offsets; neighbours are joined. Sorted by offset. If nothing maps
// the pages, this costs no more than one MADV_REMOVE for all (docs/internals/kernel-facts.md), and
// it needs no view.
int punch_all(int memfd, std::span<const Piece> pieces);

}  // namespace outcore::os
