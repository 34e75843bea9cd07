// Memory file: the memfd behind shared and protected frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/os/frames.h"
#include "outcore/result.h"

namespace outcore::os {

Result<int> make_memory_file(uint64_t size_bytes);
// Maps the piece, inaccessible, in place of the reserved addresses; not inherited by children. 0 or
// -errno.
int map_memory_file(int memfd, const Piece& piece);
// Whole transfers. 0 or -errno. The fault path.
int write_memory_file(int memfd, uint64_t offset, std::span<const std::byte> bytes);
int read_memory_file(int memfd, uint64_t offset, std::span<std::byte> into);
// Frees the pieces' offsets, neighbours joined. Sorted. Page by page this is no dearer than one
// MADV_REMOVE for all, once nothing maps the pages (docs/internals/kernel-facts.md), and it needs
// no view.
int punch_all(int memfd, std::span<const Piece> pieces);

}  // namespace outcore::os
