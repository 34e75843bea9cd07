#include "arrays/commands/npy_header.h"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "arrays/commands/array_box.h"
#include "arrays/commands/python_literal.h"
#include "cli/assert.h"

namespace outcore::cli {
namespace {

using Kind = PythonLiteral::Kind;

// REQUIRES: a character that Unicode has.
void append_utf8(char32_t c, std::string* text) {
  CLI_CHECK(c <= 0x10ffff);
  const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr uint8_t kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  *text += static_cast<char>(kFirst[more] | c >> (6 * more));
  for (int k = more; k-- > 0;) *text += static_cast<char>(0x80 | (c >> (6 * k) & 0x3f));
}

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kHeaderBytesMax = 1 << 20;
constexpr uint64_t kElementBytesMax = 1 << 20;  // the container's limit

Error wrong(const std::string& why) { return {EINVAL, why}; }

// a * b; 0 if that is more than `most`.
uint64_t times(uint64_t a, uint64_t b, uint64_t most) { return a != 0 && b > most / a ? 0 : a * b; }

// Parses '<f8', '>M8[ns]' or '|S12'.
Result<NumpyType> parse_word(const std::string& word) {
  NumpyType parsed;
  const size_t bracket = word.find('[');
  std::string name = word.substr(0, bracket);
  if (name.size() < 2 || std::string_view("<>|=").find(name[0]) == std::string_view::npos)
    return wrong("'" + word + "' is not a type of NumPy's");
  parsed.is_swapped = name[0] == '>';
  if (name[0] != '|') name[0] = '<';
  const char kind = name[1];
  if (kind == 'O') {
    parsed.refusal = "it holds pickled Python objects, whose bytes are programs: store numbers";
    return parsed;
  }
  uint32_t size = 0;
  const auto end = std::from_chars(name.data() + 2, name.data() + name.size(), size);
  if (name.size() < 3 || end.ec != std::errc() || end.ptr != name.data() + name.size())
    return wrong("'" + word + "' is not a type of NumPy's");
  if (kind == 'U') {
    parsed.unicode_chars = size;
    parsed.type = {"S" + std::to_string(uint64_t{size} * 4), size * 4};
    if (size > kElementBytesMax / 4) parsed.refusal = "its texts are too long";
    return parsed;
  }
  if ((kind == 'M' || kind == 'm') && size == 8) {
    parsed.type = {"<i8", 8};
    parsed.note = "<" + word.substr(1);
    return parsed;
  }
  if (bracket != std::string::npos) return wrong("'" + word + "' is not a type of NumPy's");
  if (kind == 'S' || kind == 'V' || kind == 'a') {
    if (size == 0 || size > kElementBytesMax)
      parsed.refusal = "its elements have " + std::to_string(size) + " bytes, not 1 to 1048576";
    parsed.type = {(kind == 'V' ? "V" : "S") + std::to_string(size), size};
    parsed.is_swapped = false;
    return parsed;
  }
  if (size == 1) name[0] = '|';
  const std::string_view sizes = kind == 'f'                  ? " 2 4 8 16 "
                                 : kind == 'c'                ? " 8 16 32 "
                                 : kind == 'b'                ? " 1 "
                                 : kind == 'i' || kind == 'u' ? " 1 2 4 8 "
                                                              : "";
  if (sizes.find(" " + std::to_string(size) + " ") == std::string_view::npos)
    parsed.refusal = "its type " + word + " is not known here";
  else
    parsed.type = {name.substr(0, 2) + std::to_string(size), size};
  return parsed;
}

Result<NumpyType> parse_type(const PythonLiteral& literal);

// The bytes of one field of a record: (name, type) or (name, type, shape). 0: it is not one.
Result<uint64_t> field_bytes(const PythonLiteral& field, std::string* refusal) {
  if (!field.is(Kind::kTuple) || field.items.size() < 2 || field.items.size() > 3)
    return wrong("a field is (name, type)");
  const auto type = parse_type(field.items[1]);
  if (!type) return type.error();
  if (!type->refusal.empty()) *refusal = type->refusal;
  if (type->is_swapped) *refusal = "its fields have the highest byte first: convert it";
  uint64_t size = type->type.size_bytes;
  if (field.items.size() == 2) return size;
  std::vector<PythonLiteral> shape = field.items[2].items;
  if (field.items[2].is(Kind::kNumber)) shape = {field.items[2]};
  for (const PythonLiteral& n : shape) {
    if (!n.is(Kind::kNumber)) return wrong("a field's shape is of numbers");
    const bool is_large = n.number != 0 && size > kElementBytesMax / n.number;
    if (is_large) *refusal = "its fields have more than 1 MiB each";
    size = is_large ? kElementBytesMax : size * n.number;
  }
  return size;
}

Result<NumpyType> parse_type(const PythonLiteral& literal) {
  if (literal.is(Kind::kString)) return parse_word(literal.string);
  if (!literal.is(Kind::kList)) return wrong("a type is a string or a list of fields");
  NumpyType record;
  uint64_t size = 0;
  for (const PythonLiteral& field : literal.items) {
    const auto bytes = field_bytes(field, &record.refusal);
    if (!bytes) return bytes.error();
    size += bytes.value();
  }
  if (record.refusal.empty() && (size == 0 || size > kElementBytesMax))
    record.refusal = "its elements have " + std::to_string(size) + " bytes, not 1 to 1048576";
  record.type = {"V" + std::to_string(size), static_cast<uint32_t>(size)};
  record.note = std::string(literal.words);
  return record;
}

}  // namespace

Result<NumpyType> parse_numpy_type(std::string_view text) {
  const auto literal = parse_python_literal(text);
  if (!literal) return literal.error();
  return parse_type(literal.value());
}

std::string numpy_type_of(const ArrayType& type, const Texts& attributes) {
  if (const auto note = attributes.find(kNumpyNote); note != attributes.end()) {
    const std::string words =
        note->second.starts_with("[") ? note->second : "'" + note->second + "'";
    const auto noted = parse_numpy_type(words);
    if (noted.ok() && noted->refusal.empty() && !noted->is_swapped && noted->type == type)
      return words;
  }
  return std::string("'") + (type.name[0] == 'S' || type.name[0] == 'V' ? "|" : "") + type.name +
         "'";
}

Result<uint64_t> npy_header_bytes(std::string_view prefix) {
  if (!prefix.starts_with(kMagic) || prefix.size() < kNpyPrefixBytes)
    return wrong("it is not an .npy file: it does not begin as one");
  const auto byte = [prefix](size_t i) { return uint64_t{static_cast<uint8_t>(prefix[i])}; };
  const uint64_t version = byte(6);
  if (version < 1 || version > 3)
    return wrong("it is of format " + std::to_string(version) + ", newer than is known here");
  const uint64_t length = version == 1 ? byte(8) | byte(9) << 8
                                       : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > kHeaderBytesMax) return wrong("its header has more than 1 MiB");
  return length + (version == 1 ? 10 : 12);
}

Result<NpyHeader> parse_npy_header(std::string_view bytes) {
  const auto size = npy_header_bytes(bytes);
  if (!size) return size.error();
  if (size.value() > bytes.size()) return wrong("it ends within its header");
  const uint64_t from = bytes[6] == 1 ? 10 : 12;
  // The text is UTF-8 since format 3.0, and Latin-1 before.
  std::string text;
  for (const char c : bytes.substr(from, size.value() - from))
    if (bytes[6] < 3)
      append_utf8(static_cast<uint8_t>(c), &text);
    else
      text += c;
  const auto literal = parse_python_literal(text);
  if (!literal) return wrong("its header: " + literal.message());
  const PythonLiteral* const descr = literal->find("descr");
  const PythonLiteral* const order = literal->find("fortran_order");
  const PythonLiteral* const shape = literal->find("shape");
  if (descr == nullptr || order == nullptr || shape == nullptr || !order->is(Kind::kBool) ||
      !shape->is(Kind::kTuple))
    return wrong("its header lacks descr, fortran_order or shape");
  auto type = parse_type(*descr);
  if (!type) return wrong("its header: " + type.message());
  NpyHeader header;
  header.type = std::move(type).value();
  header.order = order->number != 0 ? Order::kColumn : Order::kRow;
  header.size_bytes = size.value();
  header.data_bytes = header.type.type.size_bytes;
  constexpr uint64_t kMost = uint64_t{1} << 62;
  bool is_empty = false;
  for (const PythonLiteral& n : shape->items) {
    if (!n.is(Kind::kNumber)) return wrong("its header: a shape is of numbers");
    header.dims.push_back(n.number);
    is_empty = is_empty || n.number == 0;
  }
  for (const uint64_t n : header.dims) {
    if (!is_empty && header.data_bytes != 0 && times(header.data_bytes, n, kMost) == 0)
      return wrong("its shape is larger than any file");
    header.data_bytes = is_empty ? 0 : header.data_bytes * n;
  }
  return header;
}

bool is_text(const ArrayInfo& info) { return info.type.name == "text"; }

std::string npy_header_of(const FileArray& array, uint64_t letters) {
  const ArrayInfo& info = array.info;
  std::string shape;
  if (!is_text(info))
    for (const uint64_t n : info.dims) shape += std::to_string(n) + ", ";
  // As NumPy writes it: "(3, 4)", "(3,)".
  if (info.dims.size() > 1) shape.resize(shape.size() - 2);
  if (info.dims.size() == 1 && !shape.empty()) shape.pop_back();
  const std::string type = is_text(info) ? "'<U" + std::to_string(letters) + "'"
                                         : numpy_type_of(info.type, array.attributes);
  std::string text = "{'descr': " + type + ", 'fortran_order': ";
  text += info.order == Order::kColumn && info.dims.size() > 1 ? "True" : "False";
  text += ", 'shape': (" + shape + "), }";
  const bool is_ascii =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
  const int format = !is_ascii ? 3 : text.size() > 60000 ? 2 : 1;
  const size_t prefix = format == 1 ? 10 : 12;
  const size_t padded = (prefix + text.size() + 1 + 63) / 64 * 64;
  text.append(padded - prefix - text.size() - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header += static_cast<char>(format);
  header += '\0';
  for (size_t i = 0; i < prefix - 8; ++i)
    header += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return header + text;
}

Status check_npy(const FileArray& array) {
  if (array.info.type.name == "object")
    return wrong("it holds an object of a program, which only that can read");
  return {};
}

FileArray array_of(const NpyHeader& header, const std::string& name) {
  FileArray array;
  array.info.name = name;
  array.info.type = header.type.type;
  array.info.dims = header.dims;
  array.info.order = header.dims.size() > 1 ? header.order : Order::kRow;
  array.info.size_bytes = header.data_bytes;
  array.refusal = header.type.refusal;
  if (header.type.unicode_chars != 0 && !header.dims.empty() && array.refusal.empty())
    array.refusal =
        "its elements are texts of 4 bytes a letter: encode it, "
        "numpy.char.encode(values)";
  if (!header.type.note.empty()) array.attributes[kNumpyNote] = header.type.note;
  return array;
}

Result<std::u32string> utf32_of(std::string_view text) {
  std::u32string letters;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<uint8_t>(text[i]);
    const size_t more = first < 0x80 ? 0 : first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    char32_t letter = first < 0x80 ? first : first & (0x3f >> more);
    if (first >= 0x80 && (first < 0xc2 || first > 0xf4)) return wrong("it is not UTF-8");
    if (i + more >= text.size()) return wrong("it is not UTF-8");
    for (size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<uint8_t>(text[i + k]);
      if ((next & 0xc0) != 0x80) return wrong("it is not UTF-8");
      letter = letter << 6 | (next & 0x3f);
    }
    if (letter > 0x10ffff) return wrong("it is not UTF-8");
    letters += letter;
    i += more + 1;
  }
  return letters;
}

Result<std::string> utf8_of(std::u32string_view letters) {
  std::string text;
  while (!letters.empty() && letters.back() == 0) letters.remove_suffix(1);
  for (const char32_t c : letters) {
    if (c > 0x10ffff) return wrong("it has a character that is not valid");
    append_utf8(c, &text);
  }
  return text;
}

Result<std::u32string> load_letters(const ArrayInfo& info, const LoadBox& load) {
  const auto text = load_text(info, load);
  if (!text) return text.error();
  auto letters = utf32_of(text.value());
  if (!letters) return Error{EINVAL, "'" + info.name + "': " + letters.message()};
  letters->resize(std::max<size_t>(letters->size(), 1));
  return letters;
}

}  // namespace outcore::cli
