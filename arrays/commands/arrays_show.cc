#include "arrays/commands/arrays_show.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "arrays/commands/array_box.h"
#include "arrays/commands/array_picture.h"
#include "arrays/commands/array_pieces.h"
#include "arrays/commands/open_file.h"
#include "cli/command.h"
#include "cli/export_target.h"
#include "cli/json.h"
#include "cli/text.h"
#include "outcore/arrays.h"

namespace outcore::cli {
namespace {

constexpr uint64_t kSideMax = 1024;  // cells

double half(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double value = 0;
  if (exponent == 31)
    value = fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                          : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    value = std::ldexp(fraction, -24);
  else
    value = std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 != 0 ? -value : value;
}

template <typename T>
double as(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>> ||
                std::is_same_v<T, std::complex<long double>>)
    return static_cast<double>(std::abs(value));
  else
    return static_cast<double>(value);
}
double as_half(const char* bytes) {
  uint16_t bits = 0;
  std::memcpy(&bits, bytes, sizeof bits);
  return half(bits);
}

using ToNumber = double (*)(const char*);

// nullptr: the elements are not numbers. Complex numbers are shown by their magnitude.
ToNumber to_number(const ArrayType& type) {
  const std::pair<const char*, ToNumber> kAll[] = {{"<f2", as_half},
                                                   {"<f4", as<float>},
                                                   {"<f8", as<double>},
                                                   {"<f16", as<long double>},
                                                   {"|i1", as<int8_t>},
                                                   {"<i2", as<int16_t>},
                                                   {"<i4", as<int32_t>},
                                                   {"<i8", as<int64_t>},
                                                   {"|u1", as<uint8_t>},
                                                   {"<u2", as<uint16_t>},
                                                   {"<u4", as<uint32_t>},
                                                   {"<u8", as<uint64_t>},
                                                   {"|b1", as<uint8_t>},
                                                   {"<c8", as<std::complex<float>>},
                                                   {"<c16", as<std::complex<double>>},
                                                   {"<c32", as<std::complex<long double>>}};
  for (const auto& [name, read] : kAll)
    if (type.name == name) return read;
  return nullptr;
}

// The plane in the middle, if no slice is given.
std::string default_slice(const Dims& dims) {
  if (dims.size() <= 2) return {};
  std::string text;
  for (size_t d = 0; d < dims.size(); ++d)
    text += (d == 0 ? "" : ",") + (d + 2 < dims.size() ? std::to_string(dims[d] / 2) : ":");
  return text;
}

struct Shown {
  ArrayInfo info;
  Slice slice;
  std::string words;  // "u[4,:,:]"
  Dims dims;          // of the slice: none, one or two
};

Status print_value(const Arrays& arrays, const Shown& shown, const ArraysShow& show) {
  const ArrayInfo& info = shown.info;
  std::string text;
  Json value;
  if (info.type.name == "text") {
    const auto loaded = arrays.load<std::string>(info.name);
    if (!loaded) return loaded.error();
    value = text = loaded.value();
  } else {
    std::string bytes(info.type.size_bytes, '\0');
    if (Status s = arrays.load_box(info.name, info.type, bytes.data(), shown.slice.offsets,
                                   shown.slice.dims);
        !s)
      return s;
    const ToNumber read = to_number(info.type);
    if (read == nullptr && info.type.name[0] != 'S')
      return Error{EINVAL,
                   "'" + info.name + "' holds " + info.type.name + ", which is not a number"};
    text =
        read != nullptr ? format("%.17g", read(bytes.data())) : bytes.substr(0, bytes.find('\0'));
    if (read != nullptr)
      value = read(bytes.data());
    else
      value = text;
  }
  if (show.is_json)
    show_json({{"name", info.name}, {"slice", show.slice}, {"value", value}});
  else
    std::printf("%s\n", one_line(text).c_str());
  return {};
}

// Reads the whole slice, piece by piece.
Status read_slice(const Arrays& arrays, const Shown& shown, Numbers* numbers, Cells* cells) {
  const ToNumber read = to_number(shown.info.type);
  const uint64_t size = shown.info.type.size_bytes;
  ArrayInfo part = shown.info;
  part.dims = shown.slice.dims;
  ArrayPieces pieces(part);
  std::string bytes;
  const size_t rank = part.dims.size();
  const bool is_column = part.order == Order::kColumn;
  for (Dims offsets, dims; pieces.next(&offsets, &dims);) {
    Dims from = offsets, at(rank, 0);
    for (size_t d = 0; d < rank; ++d) from[d] += shown.slice.offsets[d];
    const uint64_t count = count_of(dims);
    bytes.resize(count * size);
    if (Status s = arrays.load_box(part.name, part.type, bytes.data(), from, dims); !s) return s;
    for (uint64_t i = 0; i < count; ++i) {
      const double value = read(bytes.data() + i * size);
      uint64_t place[2] = {0, 0};  // row and column
      size_t k = 2 - shown.dims.size();
      for (size_t d = 0; d < rank; ++d)
        if (!shown.slice.is_dropped[d]) place[k++] = offsets[d] + at[d];
      numbers->add(value);
      cells->add(place[0], place[1], value);
      for (size_t j = 0; j < rank; ++j) {
        const size_t d = is_column ? j : rank - 1 - j;
        if (++at[d] < dims[d]) break;
        at[d] = 0;
      }
    }
  }
  return {};
}

// The range in "LOW:HIGH"; without a text, the range of the numbers.
Status read_range(const std::string& text, const Numbers& numbers, double* low, double* high) {
  *low = numbers.min;
  *high = numbers.max;
  if (text.empty()) return {};
  const size_t colon = text.find(':');
  const auto read = [](std::string_view word, double* into) {
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), *into);
    return parsed.ec == std::errc() && parsed.ptr == word.data() + word.size() &&
           std::isfinite(*into);
  };
  if (colon != std::string::npos && read(std::string_view(text).substr(0, colon), low) &&
      read(std::string_view(text).substr(colon + 1), high) && *low < *high)
    return {};
  return Error{EINVAL, "range '" + text + "' is not valid: write as in --range 0:1.5"};
}

Status check_picture(const ArraysShow& show, const std::string& path) {
  if (!path.ends_with(".png"))
    return Error{EINVAL, "'" + path + "' has to end in .png: use --out slice.png"};
  if (::access(path.c_str(), F_OK) == 0 && !show.may_replace)
    return Error{EEXIST, path + " is there: add --replace, or name another by --out"};
  return {};
}

Status write_picture(const Picture& picture, const std::string& path, bool may_replace) {
  ExportTarget target(path);
  if (Status s = target.check_folder(); !s) return s;
  if (Status s = write_png(picture, target.temporary()); !s) return target.explain(s.error());
  return target.finish(may_replace);
}

void print(const ArraysShow& show, const Shown& shown, const Numbers& numbers,
           const std::string& path) {
  const std::string value = shown.info.type.name[1] == 'c' ? "magnitude " : "";
  if (show.is_json) {
    Json told = {{"name", shown.info.name},      {"slice", shown.words},
                 {"type", shown.info.type.name}, {"dims", shown.dims},
                 {"finite", numbers.finite},     {"nan", numbers.nan},
                 {"infinite", numbers.infinite}, {"picture", path}};
    if (numbers.finite != 0)
      told.update({{"min", numbers.min}, {"max", numbers.max}, {"mean", numbers.mean()}});
    show_json(told);
    return;
  }
  std::printf("%s: %s %s", one_line(shown.words).c_str(), text_of(shown.dims).c_str(),
              shown.info.type.name.c_str());
  if (numbers.finite != 0)
    std::printf(", %smin %.6g, max %.6g, mean %.6g", value.c_str(), numbers.min, numbers.max,
                numbers.mean());
  if (numbers.nan != 0) std::printf(", %llu NaN", static_cast<unsigned long long>(numbers.nan));
  if (numbers.infinite != 0)
    std::printf(", %llu infinite", static_cast<unsigned long long>(numbers.infinite));
  std::printf("\n%s\n", one_line(path).c_str());
}

std::string default_picture(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name + ".png";
}

}  // namespace

Status show_array(const ArraysShow& show) {
  const auto arrays = open_container(show.uri);
  if (!arrays) return arrays.error();
  const auto info = arrays->info(show.name);
  if (!info) return info.error();
  Shown shown;
  shown.info = info.value();
  const bool is_text = info->type.name == "text";
  if (is_text && !show.slice.empty())
    return Error{EINVAL, "'" + show.name + "' is a text: leave --slice out"};
  const std::string words = show.slice.empty() ? default_slice(info->dims) : show.slice;
  auto slice = parse_slice(words, info->dims);
  if (!slice) return Error{EINVAL, "'" + show.name + "': " + slice.message()};
  shown.slice = std::move(slice).value();
  shown.dims = shown.slice.kept();
  shown.words = show.name + (words.empty() ? "" : "[" + words + "]");
  if (is_text || shown.dims.empty()) return print_value(arrays.value(), shown, show);
  if (to_number(info->type) == nullptr)
    return Error{EINVAL, "'" + show.name + "' holds " + info->type.name +
                             ", which are not numbers: show one value, as in --slice 0"};
  if (shown.dims.size() > 2)
    return Error{EINVAL, "slice '" + words + "' has " + std::to_string(shown.dims.size()) +
                             " dimensions: a picture has two, as in --slice " +
                             default_slice(info->dims)};
  if (count_of(shown.dims) == 0)
    return Error{EINVAL, "'" + shown.words + "' has no elements: show another"};
  const std::string path = show.picture.empty() ? default_picture(show.name) : show.picture;
  if (Status s = check_picture(show, path); !s) return s;
  Numbers numbers;
  double low = 0, high = 0;
  if (Status s = read_range(show.range, numbers, &low, &high); !s) return s;
  const bool is_curve = shown.dims.size() == 1;
  Cells cells(is_curve ? 1 : shown.dims[0], shown.dims.back(), kSideMax);
  if (Status s = read_slice(arrays.value(), shown, &numbers, &cells); !s) return s;
  if (Status s = read_range(show.range, numbers, &low, &high); !s) return s;
  const Picture picture =
      is_curve ? curve_of(cells, low, high) : map_of(cells, low, high, show.colors);
  if (Status s = write_picture(picture, path, show.may_replace); !s) return s;
  print(show, shown, numbers, path);
  return {};
}

}  // namespace outcore::cli
