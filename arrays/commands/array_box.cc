#include "arrays/commands/array_box.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <sstream>

#include "arrays/commands/array_pieces.h"
#include "cli/assert.h"

namespace outcore::cli {
namespace {

// A whole number; a negative one counts from the end.
std::optional<int64_t> number_of(std::string_view text) {
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + ",") {
    if (c == ',') {
      parts.push_back(part);
      part.clear();
    } else if (c != ' ') {
      part += c;
    }
  }
  if (parts.size() > 1 && parts.back().empty()) parts.pop_back();  // "5,"
  return parts;
}

// Reads one dimension of n elements. Returns what is wrong with the text, or nothing.
std::string read_part(const std::string& part, uint64_t n, Slice* slice) {
  const auto size = static_cast<int64_t>(n);
  const size_t colon = part.find(':');
  if (colon == std::string::npos) {
    auto at = number_of(part);
    if (!at) return "'" + part + "' is neither a number nor a range";
    if (*at < 0) *at += size;
    if (*at < 0 || *at >= size) return part + " is outside of " + std::to_string(n) + " elements";
    slice->offsets.push_back(static_cast<uint64_t>(*at));
    slice->dims.push_back(1);
    slice->is_dropped.push_back(true);
    return {};
  }
  if (part.find(':', colon + 1) != std::string::npos)
    return "'" + part + "' has a step, and steps are not known";
  const std::string low = part.substr(0, colon), high = part.substr(colon + 1);
  auto from = low.empty() ? std::optional<int64_t>(0) : number_of(low);
  auto to = high.empty() ? std::optional<int64_t>(size) : number_of(high);
  if (!from || !to) return "'" + part + "' is neither a number nor a range";
  if (*from < 0) *from += size;
  if (*to < 0) *to += size;
  if (*from < 0 || *to > size || *to < 0)
    return part + " is outside of " + std::to_string(n) + " elements";
  if (*from >= *to) return part + " has no elements";
  slice->offsets.push_back(static_cast<uint64_t>(*from));
  slice->dims.push_back(static_cast<uint64_t>(*to - *from));
  slice->is_dropped.push_back(false);
  return {};
}

}  // namespace

uint64_t count_of(const Dims& dims) {
  uint64_t count = 1;
  for (const uint64_t n : dims) count *= n;
  return count;
}

std::string text_of(const Dims& dims) {
  if (dims.empty()) return "one value";
  std::string text;
  for (const uint64_t n : dims) text += (text.empty() ? "" : " x ") + std::to_string(n);
  return text;
}

Dims reversed(const Dims& dims) { return {dims.rbegin(), dims.rend()}; }

Dims Slice::kept() const {
  CLI_CHECK(is_dropped.size() == dims.size());
  Dims kept;
  for (size_t d = 0; d < dims.size(); ++d)
    if (!is_dropped[d]) kept.push_back(dims[d]);
  return kept;
}

Result<Slice> parse_slice(const std::string& text, const Dims& dims) {
  Slice slice;
  if (text.empty()) {
    slice.offsets.assign(dims.size(), 0);
    slice.dims = dims;
    slice.is_dropped.assign(dims.size(), false);
    return slice;
  }
  const auto wrong = [&](const std::string& why) {
    return Error{EINVAL, "slice '" + text + "' of " + text_of(dims) + ": " + why +
                             ": write as in --slice 10:20,:,5"};
  };
  std::vector<std::string> parts = parts_of(text);
  const auto dots = std::find(parts.begin(), parts.end(), "...");
  const size_t given = parts.size() - (dots != parts.end() ? 1 : 0);
  if (given > dims.size())
    return wrong("it has " + std::to_string(given) + " parts, and the array " +
                 std::to_string(dims.size()) + " dimensions");
  const std::vector<std::string> whole(dims.size() - given, ":");
  const auto at = dots != parts.end() ? parts.erase(dots) : parts.end();
  parts.insert(at, whole.begin(), whole.end());
  CLI_CHECK(parts.size() == dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (parts[d] == ":" && dims[d] == 0) {
      slice.offsets.push_back(0);
      slice.dims.push_back(0);
      slice.is_dropped.push_back(false);
    } else if (const std::string why = read_part(parts[d], dims[d], &slice); !why.empty()) {
      return wrong(why);
    }
  }
  return slice;
}

Result<Dims> parse_tiles(const std::string& text) {
  Dims tiles;
  for (const std::string& part : parts_of(text)) {
    const auto extent = number_of(part);
    if (!extent || *extent < 1)
      return Error{EINVAL, "tiles '" + text + "' are not valid: write as in --tiles 64,64,64"};
    tiles.push_back(static_cast<uint64_t>(*extent));
  }
  return tiles;
}

void copy_box(uint64_t element_bytes, const void* from, const Place& from_place, void* to,
              const Place& to_place, const Dims& box) {
  const size_t rank = box.size();
  CLI_CHECK(from_place.at.size() == rank && from_place.dims.size() == rank);
  CLI_CHECK(to_place.at.size() == rank && to_place.dims.size() == rank);
  if (count_of(box) == 0) return;
  const auto offset_of = [rank](const Place& place, const Dims& at) {
    uint64_t offset = 0;
    for (size_t d = 0; d < rank; ++d) offset = offset * place.dims[d] + place.at[d] + at[d];
    return offset;
  };
  const uint64_t run = rank == 0 ? 1 : box.back();
  Dims at(rank, 0);
  for (;;) {
    std::memcpy(static_cast<char*>(to) + offset_of(to_place, at) * element_bytes,
                static_cast<const char*>(from) + offset_of(from_place, at) * element_bytes,
                run * element_bytes);
    size_t d = rank == 0 ? 0 : rank - 1;
    while (d-- > 0) {
      if (++at[d] < box[d]) break;
      at[d] = 0;
    }
    if (d >= rank) return;
  }
}

namespace {

void turn_over(uint64_t element_bytes, const Dims& dims, const char* column, char* rows) {
  Dims strides(dims.size()), at(dims.size(), 0);
  uint64_t stride = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    strides[d] = stride;
    stride *= dims[d];
  }
  for (uint64_t i = 0, offset = 0; i < stride; ++i) {
    std::memcpy(rows + i * element_bytes, column + offset * element_bytes, element_bytes);
    for (size_t d = dims.size(); d-- > 0;) {
      offset += strides[d];
      if (++at[d] < dims[d]) break;
      offset -= at[d] * strides[d];
      at[d] = 0;
    }
  }
}

}  // namespace

LoadBox in_rows(const ArrayInfo& info, LoadBox load) {
  if (info.order == Order::kRow || info.dims.size() < 2) return load;
  return [size = uint64_t{info.type.size_bytes}, load = std::move(load)](
             const Dims& offsets, const Dims& dims, void* into) -> Status {
    std::vector<char> columns(count_of(dims) * size);
    if (Status s = load(offsets, dims, columns.data()); !s) return s;
    turn_over(size, dims, columns.data(), static_cast<char*>(into));
    return {};
  };
}

Result<std::string> load_text(const ArrayInfo& info, const LoadBox& load) {
  const uint64_t size = count_of(info.dims);
  if (size > kPieceBytes)
    return Error{EFBIG, "'" + info.name +
                            "' is a text of more than 64 MiB, which other formats do "
                            "not hold as one value"};
  std::string text(size, '\0');
  if (size == 0) return text;
  if (Status s = load({0}, {size}, text.data()); !s) return s.error();
  return text;
}

namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream from(text);
  std::vector<std::string> words;
  for (std::string word; from >> word;) words.push_back(word);
  return words;
}

}  // namespace

std::vector<std::string> dimension_names(const FileArray& array) {
  std::vector<std::string> names;
  if (const auto noted = array.attributes.find(kDimsNote); noted != array.attributes.end())
    names = words_of(noted->second);
  const Dims& dims = array.info.dims;
  if (names.size() != dims.size()) names.assign(dims.size(), "");
  for (size_t d = 0; d < dims.size(); ++d) {
    const std::string wanted = names[d].empty() ? "dim_" + std::to_string(dims[d]) : names[d];
    names[d] = wanted;
    for (int again = 2; std::count(names.begin(), names.begin() + d, names[d]) != 0; ++again)
      names[d] = wanted + "_" + std::to_string(again);
  }
  return names;
}

Status ArrayReader::load(size_t index, const Dims& offsets, const Dims& dims, void* into) {
  CLI_CHECK(index < arrays_.size() && arrays_[index].refusal.empty());
  const auto text = texts_.find(index);
  if (text == texts_.end()) return load_piece(index, offsets, dims, into);
  CLI_CHECK(offsets.front() + dims.front() <= text->second.size());
  std::memcpy(into, text->second.data() + offsets.front(), dims.front());
  return {};
}

void ArrayReader::set_text(size_t index, std::string text) {
  CLI_CHECK(index < arrays_.size());
  ArrayInfo& info = arrays_[index].info;
  info.type = {"text", 1};
  info.dims = {text.size()};
  info.size_bytes = text.size();
  texts_[index] = std::move(text);
}

void swap_bytes(const ArrayType& type, void* data, uint64_t count) {
  const size_t at = type.name.find_first_not_of("<|");
  const char kind = at == std::string::npos ? 'V' : type.name[at];
  if (kind != 'f' && kind != 'c' && kind != 'i' && kind != 'u') return;
  const uint64_t part = kind == 'c' ? type.size_bytes / 2 : type.size_bytes;
  CLI_CHECK(part != 0);
  auto* const bytes = static_cast<char*>(data);
  for (uint64_t i = 0; i < count * type.size_bytes; i += part)
    std::reverse(bytes + i, bytes + i + part);
}

}  // namespace outcore::cli
