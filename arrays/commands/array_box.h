// ArrayBox: boxes of arrays: the slices that people write, and copies between dense boxes. Any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arrays/commands/array_file.h"
#include "outcore/arrays.h"

namespace outcore::cli {

uint64_t count_of(const Dims& dims);    // elements
std::string text_of(const Dims& dims);  // "3 x 4", or "one value"

// "10:20,:,5", as in Python: negative numbers count from the end, a number takes its dimension
// away, "..." is all dimensions between, what is not written is whole. Steps are not known.
struct Slice {
  Dims offsets, dims;            // in all dimensions of the array
  std::vector<bool> is_dropped;  // by a number
  Dims kept() const;             // the dimensions of what it is
};
// An empty text is all of it. EINVAL: what is wrong with it.
Result<Slice> parse_slice(const std::string& text, const Dims& dims);

// "64,64,64": an extent for each dimension, at least 1. EINVAL: what is wrong with it.
Result<Dims> parse_tiles(const std::string& text);

// Within dense boxes in row order.
struct Place {
  Dims dims, at;
};
void copy_box(uint64_t element_bytes, const void* from, const Place& from_place, void* to,
              const Place& to_place, const Dims& box);

// The same elements in row order, whatever the array's is.
LoadBox in_rows(const ArrayInfo& info, LoadBox load);

// One text; at most kPieceBytes of it.
Result<std::string> load_text(const ArrayInfo& info, const LoadBox& load);

Dims reversed(const Dims& dims);

// The elements' bytes the other way round: of numbers, and of both parts of complex ones.
void swap_bytes(const ArrayType& type, void* data, uint64_t count);

}  // namespace outcore::cli
