#include "arrays/formats/zarr_metadata.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <optional>

#include "arrays/commands/array_box.h"
#include "arrays/commands/npy_header.h"
#include "arrays/formats/zarr_codecs.h"
#include "cli/assert.h"

namespace outcore::cli {
namespace {

constexpr uint64_t kChunkBytesMax = uint64_t{1} << 31;
constexpr uint64_t kArrayBytesMax = uint64_t{1} << 62;

Error wrong(const std::string& why) { return {EINVAL, why}; }

bool read_dims(const Json& value, Dims* dims) {
  const auto all = value.as<Dims>();
  if (all) *dims = *all;
  return all.has_value();
}

// Shapes, and how large a chunk is.
Status check_shapes(ZarrArray* zarr) {
  ArrayInfo& info = zarr->array.info;
  if (info.dims.size() != info.tiles.size()) return wrong("chunks and shape differ in dimensions");
  if (info.dims.size() > 32) return wrong("it has more than 32 dimensions");
  zarr->chunk_bytes = info.type.size_bytes;
  for (const uint64_t n : info.tiles) {
    if (n == 0) return wrong("a chunk has no elements");
    if (zarr->chunk_bytes > kChunkBytesMax / n) {
      zarr->array.refusal = "its chunks have more than 2 GiB: write smaller ones";
      return {};
    }
    zarr->chunk_bytes *= n;
  }
  uint64_t count = 1;
  for (const uint64_t n : info.dims) {
    if (n != 0 && count > kArrayBytesMax / std::max(info.type.size_bytes, 1u) / n)
      return wrong("its shape is larger than any disk");
    count *= std::max<uint64_t>(n, 1);
  }
  info.size_bytes = count_of(info.dims) * info.type.size_bytes;
  return {};
}

// Bytes of a half, the nearest.
std::string half_of(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  uint16_t bits = 0x7c00;
  if (std::isnan(value)) {
    bits = 0x7e00;
  } else if (std::abs(value) < 65520) {  // what is larger becomes infinite
    int exponent = 0;
    std::frexp(value, &exponent);
    exponent = value == 0 ? -13 : std::max(exponent, -13);
    // Of 2^(exponent - 1): from 1024 to 2048, which is carried into the exponent; below: subnormal.
    const auto parts =
        static_cast<uint16_t>(std::nearbyint(std::ldexp(std::abs(value), 11 - exponent)));
    bits = static_cast<uint16_t>(parts + (exponent + 13) * 1024);
  }
  bits = static_cast<uint16_t>(bits | sign);
  return {reinterpret_cast<const char*>(&bits), sizeof bits};
}

// Nothing: it is no number.
std::optional<double> number_of(const Json& value) {
  if (const auto number = value.as<double>()) return number;
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

template <typename T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Bytes of the value; zeros for none. Nothing: it is not known what it means.
std::optional<std::string> fill_of(const ArrayType& type, const Json& value) {
  const uint32_t size = type.size_bytes;
  const std::string zeros(size, '\0');
  if (value.is_null()) return zeros;
  const size_t first = type.name.find_first_not_of("<|");
  CLI_CHECK(size != 0 && first < type.name.size());
  const char kind = type.name[first];
  const auto number = number_of(value);
  if (kind == 'f' && number && size == 2) return half_of(*number);
  if (kind == 'f' && number && size == 4) return bytes_of(static_cast<float>(*number));
  if (kind == 'f' && number && size == 8) return bytes_of(*number);
  if (const auto truth = value.as<bool>(); kind == 'b' && truth)
    return bytes_of(static_cast<uint8_t>(*truth));
  if (kind == 'b' && number) return bytes_of(static_cast<uint8_t>(*number != 0));
  if (kind == 'c' && size <= 16) {
    const ArrayType part{size == 8 ? "<f4" : "<f8", size / 2};
    const bool is_pair = value.is_array() && value.size() == 2;
    const auto real = fill_of(part, is_pair ? value[0] : value);
    const auto imaginary = fill_of(part, is_pair ? value[1] : Json());
    if (real && imaginary) return *real + *imaginary;
  }
  if (kind == 'i' || kind == 'u') {
    if (const auto whole = value.as<uint64_t>()) return bytes_of(*whole).substr(0, size);
    if (const auto whole = value.as<int64_t>()) return bytes_of(*whole).substr(0, size);
    if (number && std::trunc(*number) == *number && std::abs(*number) < 9e15)
      return bytes_of(static_cast<int64_t>(*number)).substr(0, size);
  }
  if (value == "" || value == 0) return zeros;
  return std::nullopt;
}

// Chunks that are not there hold it.
void set_fill(const Json& value, ZarrArray* zarr) {
  if (!zarr->array.refusal.empty()) return;
  auto fill = fill_of(zarr->array.info.type, value);
  CLI_CHECK(!fill || !fill->empty());
  if (fill)
    zarr->fill = std::move(*fill);
  else
    zarr->array.refusal =
        "its fill_value " + value.dump({.is_ascii = true}) + " is not known here: write it with 0";
}

void add_codec(ZarrArray* zarr, const std::string& codec) {
  if (const std::string why = why_no_codec(codec); !why.empty()) zarr->array.refusal = why;
  zarr->codecs.push_back(codec);
}

// Names of dimensions that somebody gave, as kDimsNote.
void note_dims(const Json& names, FileArray* array) {
  std::string text;
  array->attributes.erase(kZarrDims);
  const auto all = names.as<std::vector<std::string>>();
  if (!all || all->size() != array->info.dims.size()) return;
  for (const std::string& name : *all) text += (text.empty() ? "" : " ") + name;
  if (!text.empty() && !text.starts_with("dim_")) array->attributes[kDimsNote] = text;
}

// The words of a type as Python writes them.
std::string python_of(const Json& dtype) {
  if (const auto name = dtype.as<std::string>()) return "'" + *name + "'";
  std::string text = "[";
  if (!dtype.is_array()) return text;
  for (const Json& field : dtype) {
    const auto name = field[0].as<std::string>();
    if (!name || field.size() < 2) return "[";
    text += "('" + *name + "', " + python_of(field[1]);
    if (field.size() > 2) {
      Dims dims;
      if (!read_dims(field[2], &dims)) return "[";
      text += ", (";
      for (const uint64_t n : dims) text += std::to_string(n) + ", ";
      text += ")";
    }
    text += "), ";
  }
  return text + "]";
}

}  // namespace

std::string ZarrArray::chunk_path(const Dims& number) const {
  std::string name = has_prefix ? "c" : "";
  for (const uint64_t n : number) name += (name.empty() ? "" : separator) + std::to_string(n);
  if (number.empty() && !has_prefix) name = "0";
  return folder + "/" + name;
}

Texts texts_of(const Json& attributes) {
  Texts texts;
  for (const auto& [key, value] : attributes.members())
    texts[key] = value.is_text() ? *value.as<std::string>() : value.dump();
  return texts;
}

Result<ZarrArray> parse_zarr2(const Json& metadata, const Json& attributes) {
  ZarrArray zarr;
  FileArray& array = zarr.array;
  if (metadata["zarr_format"] != 2) return wrong("it is not of format 2");
  if (!read_dims(metadata["shape"], &array.info.dims) ||
      !read_dims(metadata["chunks"], &array.info.tiles))
    return wrong("its shape or chunks are not lists of numbers");
  const Json& dtype = metadata["dtype"];
  const auto type = parse_numpy_type(python_of(dtype));
  if (!type) return wrong("its dtype: " + type.message());
  array.info.type = type->type;
  array.refusal = type->refusal;
  array.attributes = texts_of(attributes);
  note_dims(attributes[kZarrDims], &array);
  if (!type->note.empty()) array.attributes[kNumpyNote] = type->note;
  if (dtype == "|O")
    array.refusal =
        "it holds Python objects: store numbers, or texts of a fixed "
        "length";
  zarr.is_swapped = type->is_swapped;
  zarr.unicode_chars = type->unicode_chars;
  if (zarr.unicode_chars != 0 && !array.info.dims.empty())
    array.refusal =
        "its elements are texts of 4 bytes a letter: encode it, "
        "numpy.char.encode(values)";
  if (metadata.value("order", "") == "F" && array.info.dims.size() > 1)
    array.info.order = Order::kColumn;
  if (metadata.value("dimension_separator", "") == "/") zarr.separator = "/";
  if (const Json& packed = metadata["compressor"]; packed.is_object())
    add_codec(&zarr, packed.value("id", ""));
  if (const Json& filters = metadata["filters"]; filters.is_array() && !filters.empty())
    array.refusal =
        "it has the filter '" + filters[0].value("id", "") + "', which is not known here";
  if (Status s = check_shapes(&zarr); !s) return s.error();
  set_fill(metadata["fill_value"], &zarr);
  return zarr;
}

namespace {

// The codecs of format 3 stand in the order of packing.
void read_codecs(const Json& codecs, ZarrArray* zarr) {
  for (size_t i = codecs.size(); i-- > 0;) {
    const std::string name = codecs[i].value("name", "");
    if (name == "bytes") {
      zarr->is_swapped = codecs[i]["configuration"].value("endian", "") == "big";
    } else if (name == "sharding_indexed") {
      zarr->array.refusal = "it is kept in shards, which are not known here: write it without";
    } else {
      add_codec(zarr, name);
    }
  }
}

ArrayType type_of_zarr3(const Json& type) {
  const std::pair<const char*, ArrayType> kTypes[] = {
      {"bool", {"|b1", 1}},      {"int8", {"|i1", 1}},        {"int16", {"<i2", 2}},
      {"int32", {"<i4", 4}},     {"int64", {"<i8", 8}},       {"uint8", {"|u1", 1}},
      {"uint16", {"<u2", 2}},    {"uint32", {"<u4", 4}},      {"uint64", {"<u8", 8}},
      {"float16", {"<f2", 2}},   {"float32", {"<f4", 4}},     {"float64", {"<f8", 8}},
      {"complex64", {"<c8", 8}}, {"complex128", {"<c16", 16}}};
  for (const auto& [name, known] : kTypes)
    if (type == name) return known;
  const Json& size = type["configuration"]["length_bytes"];
  const uint64_t n = size.as<uint64_t>().value_or(0);
  const std::string name = type.value("name", "");
  if (n == 0 || n > (1 << 20)) return {};
  if (name == "null_terminated_bytes") return {"S" + std::to_string(n), static_cast<uint32_t>(n)};
  if (name == "raw_bytes") return {"V" + std::to_string(n), static_cast<uint32_t>(n)};
  return {};
}

}  // namespace

Result<ZarrArray> parse_zarr3(const Json& metadata) {
  ZarrArray zarr;
  FileArray& array = zarr.array;
  const Json& grid = metadata["chunk_grid"];
  const Json& keys = metadata["chunk_key_encoding"];
  if (!read_dims(metadata["shape"], &array.info.dims)) return wrong("its shape is not valid");
  if (!read_dims(grid["configuration"]["chunk_shape"], &array.info.tiles))
    return wrong("its chunk_shape is not valid");
  array.attributes = texts_of(metadata["attributes"]);
  note_dims(metadata["dimension_names"], &array);
  array.info.type = type_of_zarr3(metadata["data_type"]);
  zarr.has_prefix = keys.value("name", "") != "v2";
  const std::string separator = keys["configuration"].value("separator", "");
  zarr.separator = !separator.empty() ? separator : zarr.has_prefix ? "/" : ".";
  if (zarr.separator != "/" && zarr.separator != ".")
    return wrong("the separator of its chunks is neither / nor .");
  read_codecs(metadata["codecs"], &zarr);
  if (array.info.type.size_bytes == 0) {
    array.info.type = {"|u1", 1};
    array.refusal = "its data_type " + metadata["data_type"].dump() + " is not known here";
  }
  if (grid.value("name", "") != "regular") array.refusal = "its chunks are not regular";
  if (Status s = check_shapes(&zarr); !s) return s.error();
  set_fill(metadata["fill_value"], &zarr);
  return zarr;
}

Json zarr2_of(const FileArray& array, const Dims& chunks) {
  const ArrayInfo& info = array.info;
  std::string type = info.type.name;
  if (type[0] == 'S' || type[0] == 'V') type = "|" + type;
  CLI_CHECK(type.size() >= 2 && chunks.size() == info.dims.size());
  const char kind = type[1];
  Json fill = nullptr;
  if (kind == 'f') fill = 0.0;
  if (kind == 'i' || kind == 'u') fill = 0;
  if (kind == 'b') fill = false;
  Json compressor = nullptr;
  if (!info.compress.empty() && packing() == "blosc")
    compressor = {
        {"id", "blosc"}, {"cname", "zstd"}, {"clevel", 5}, {"shuffle", 1}, {"blocksize", 0}};
  else if (!info.compress.empty())
    compressor = {{"id", "zlib"}, {"level", 4}};
  return {{"zarr_format", 2},
          {"shape", info.dims},
          {"chunks", chunks},
          {"dtype", type},
          {"order", info.order == Order::kColumn ? "F" : "C"},
          {"compressor", compressor},
          {"filters", nullptr},
          {"dimension_separator", "."},
          {"fill_value", fill}};
}

Status check_zarr(const FileArray& array) {
  const std::string& type = array.info.type.name;
  if (type == "object") return wrong("it holds an object of a program, which only that can read");
  if (type == "<f16" || type == "<c32")
    return wrong("Zarr has no numbers of 16 bytes: convert it, or take HDF5");
  return {};
}

}  // namespace outcore::cli
