// NpyHeader: the first bytes of a .npy file, as NumPy writes and reads them (format 1.0 to 3.0).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "arrays/commands/array_file.h"

namespace outcore::cli {

// The container's attribute that says what NumPy knows more of a type: "<M8[ns]", or the fields of
// a record as Python writes them. The Python module sets it and heeds it, too.
inline constexpr const char* kNumpyNote = "numpy";

// A type as NumPy writes it, in .npy files and in Zarr: '<f8', '>i4', or [('x', '<f4'), …].
struct NumpyType {
  ArrayType type;
  std::string note;            // for kNumpyNote; empty: the type says all
  bool is_swapped = false;     // the highest byte first
  uint32_t unicode_chars = 0;  // '<U12': 4 bytes each; `type` is S48 then
  std::string refusal;         // why it cannot be imported
};
// Python's words for it: a string in quotes, or a list. EINVAL: they are none.
Result<NumpyType> parse_numpy_type(std::string_view text);
// The words for a type with the note, which is heeded if it is one for such a type.
std::string numpy_type_of(const ArrayType& type, const Texts& attributes);

struct NpyHeader {
  NumpyType type;
  Dims dims;
  Order order = Order::kRow;
  uint64_t size_bytes = 0;  // of itself
  uint64_t data_bytes = 0;  // of what follows
};
inline constexpr size_t kNpyPrefixBytes = 12;
// How long the header is, by the first kNpyPrefixBytes of a file (or all it has). EINVAL: it is no
// .npy file.
Result<uint64_t> npy_header_bytes(std::string_view prefix);
Result<NpyHeader> parse_npy_header(std::string_view bytes);

// Of an array that check_npy() lets pass. One text: '<U…', 4 bytes a letter (utf32_of).
std::string npy_header_of(const FileArray& array, uint64_t letters);
// EINVAL: NumPy has no such type.
Status check_npy(const FileArray& array);

// As FileArray; text comes as one value of 'U'.
FileArray array_of(const NpyHeader& header, const std::string& name);

// What is one text in the container: "text".
bool is_text(const ArrayInfo& info);
// Texts as NumPy keeps them. EINVAL: it is no UTF-8, or no UTF-32.
Result<std::u32string> utf32_of(std::string_view text);
Result<std::string> utf8_of(std::u32string_view letters);
// The array's one text, as one letter at least.
Result<std::u32string> load_letters(const ArrayInfo& info, const LoadBox& load);

}  // namespace outcore::cli
