// ArrayBox: boxes of arrays: slices as people write them, and copies between dense boxes. Any
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

// Parsed from "10:20,:,5", as in Python: negative numbers count from the end, a single number drops
// its dimension, "..." stands for all dimensions between, and missing bounds mean everything. There
// are no steps.
struct Slice {
  Dims offsets, dims;            // for all dimensions of the array
  std::vector<bool> is_dropped;  // by a single number
  Dims kept() const;             // the dimensions that are left
};
// An empty text means the whole array. EINVAL: the message says what is wrong.
Result<Slice> parse_slice(const std::string& text, const Dims& dims);

// Parses "64,64,64": an extent for each dimension, at least 1. EINVAL: as parse_slice().
Result<Dims> parse_tiles(const std::string& text);

// A place within a dense box in row order.
struct Place {
  Dims dims, at;
};
void copy_box(uint64_t element_bytes, const void* from, const Place& from_place, void* to,
              const Place& to_place, const Dims& box);

// A loader that returns the elements in row order, whatever the array's order is.
LoadBox in_rows(const ArrayInfo& info, LoadBox load);

// Loads one text, of at most kPieceBytes.
Result<std::string> load_text(const ArrayInfo& info, const LoadBox& load);

Dims reversed(const Dims& dims);

// Reverses the bytes of each element: of numbers, and of both parts of complex ones.
void swap_bytes(const ArrayType& type, void* data, uint64_t count);

}  // namespace outcore::cli
