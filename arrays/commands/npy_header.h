// NpyHeader: the first bytes of a .npy file, as NumPy writes and reads them (format 1.0 to 3.0).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "arrays/commands/array_file.h"

namespace outcore::cli {

// The attribute in which the container keeps what NumPy knows beyond our type: "<M8[ns]", or the
// fields of a record as Python writes them. The Python package uses it, too.
inline constexpr const char* kNumpyNote = "numpy";

// A type as NumPy writes it, in .npy files and in Zarr: '<f8', '>i4', or [('x', '<f4'), …].
struct NumpyType {
  ArrayType type;
  std::string note;            // for kNumpyNote; empty: the type says everything
  bool is_swapped = false;     // the highest byte comes first
  uint32_t unicode_chars = 0;  // '<U12': 4 bytes each; `type` is S48 then
  std::string refusal;         // why it cannot be imported
};
// Parses Python's text for a type: a string in quotes, or a list. EINVAL: it is neither.
Result<NumpyType> parse_numpy_type(std::string_view text);
// Python's text for a type. The attribute kNumpyNote counts if it fits the type.
std::string numpy_type_of(const ArrayType& type, const Texts& attributes);

struct NpyHeader {
  NumpyType type;
  Dims dims;
  Order order = Order::kRow;
  uint64_t size_bytes = 0;  // of the header itself
  uint64_t data_bytes = 0;  // of the data that follow
};
inline constexpr size_t kNpyPrefixBytes = 12;
// The length of the header, from the first kNpyPrefixBytes of a file (or all it has). EINVAL: not a
// .npy file.
Result<uint64_t> npy_header_bytes(std::string_view prefix);
Result<NpyHeader> parse_npy_header(std::string_view bytes);

// The header of an array that check_npy() accepts. One text: '<U…', 4 bytes a letter (utf32_of).
std::string npy_header_of(const FileArray& array, uint64_t letters);
// EINVAL: NumPy has no such type.
Status check_npy(const FileArray& array);

// The header as a FileArray. A text comes as one value of type 'U'.
FileArray array_of(const NpyHeader& header, const std::string& name);

// Whether it is one text in the container, of type "text".
bool is_text(const ArrayInfo& info);
// Texts in NumPy's encoding. EINVAL: it is not UTF-8, or not UTF-32.
Result<std::u32string> utf32_of(std::string_view text);
Result<std::string> utf8_of(std::u32string_view letters);
// Loads the array's one text; at least one letter.
Result<std::u32string> load_letters(const ArrayInfo& info, const LoadBox& load);

}  // namespace outcore::cli
