#include "arrays/formats/hdf5_handles.h"

#include <cstring>
#include <vector>

namespace outcore::cli {
namespace {

herr_t note_error(unsigned, const H5E_error2_t* error, void* into) {
  auto* const text = static_cast<std::string*>(into);
  if (text->empty() && error->desc != nullptr) *text = error->desc;
  return 0;
}

// Bool, as h5py has it: an enumeration of FALSE and TRUE.
Handle bool_type() {
  Handle type = of_type(H5Tenum_create(H5T_STD_I8LE));
  int8_t value = 0;
  H5Tenum_insert(type.id(), "FALSE", &value);
  value = 1;
  H5Tenum_insert(type.id(), "TRUE", &value);
  return type;
}

Handle float_type(uint32_t size) {
  if (size == 4) return of_type(H5Tcopy(H5T_IEEE_F32LE));
  if (size == 8) return of_type(H5Tcopy(H5T_IEEE_F64LE));
  if (size == 16) return of_type(H5Tcopy(H5T_NATIVE_LDOUBLE));
  Handle half = of_type(H5Tcopy(H5T_IEEE_F32LE));
  H5Tset_fields(half.id(), 15, 10, 5, 0, 10);
  H5Tset_size(half.id(), 2);
  H5Tset_ebias(half.id(), 15);
  return half;
}

Handle complex_type(uint32_t size) {
  const Handle part = float_type(size / 2);
  Handle type = of_type(H5Tcreate(H5T_COMPOUND, size));
  H5Tinsert(type.id(), "r", 0, part.id());
  H5Tinsert(type.id(), "i", size / 2, part.id());
  return type;
}

Handle string_type(uint32_t size) {
  Handle type = of_type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.id(), size);
  H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
  return type;
}

bool is_bool(hid_t type) {
  if (H5Tget_nmembers(type) != 2 || H5Tget_size(type) != 1) return false;
  int8_t no = 0, yes = 1;
  char name[16];
  return H5Tenum_nameof(type, &no, name, sizeof name) >= 0 && std::strcmp(name, "FALSE") == 0 &&
         H5Tenum_nameof(type, &yes, name, sizeof name) >= 0 && std::strcmp(name, "TRUE") == 0;
}

std::string member_name(hid_t type, unsigned member) {
  char* const name = H5Tget_member_name(type, member);
  const std::string text = name != nullptr ? name : "";
  H5free_memory(name);
  return text;
}

bool is_complex(hid_t type) {
  if (H5Tget_nmembers(type) != 2) return false;
  const Handle a = of_type(H5Tget_member_type(type, 0)), b = of_type(H5Tget_member_type(type, 1));
  const std::string first = member_name(type, 0), second = member_name(type, 1);
  return H5Tget_class(a.id()) == H5T_FLOAT && H5Tget_size(a.id()) == H5Tget_size(b.id()) &&
         H5Tequal(a.id(), b.id()) > 0 &&
         ((first == "r" && second == "i") || (first == "real" && second == "imag"));
}

// Whether its bytes mean something elsewhere: no pointers.
bool is_plain(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_VLEN:
    case H5T_REFERENCE:
      return false;
    case H5T_STRING:
      return H5Tis_variable_str(type) == 0;
    case H5T_ARRAY:
      return is_plain(of_type(H5Tget_super(type)).id());
    case H5T_COMPOUND:
      for (int i = 0; i < H5Tget_nmembers(type); ++i)
        if (!is_plain(of_type(H5Tget_member_type(type, static_cast<unsigned>(i))).id()))
          return false;
      return true;
    default:
      return true;
  }
}

ArrayType named(char kind, size_t size) {
  return {(size == 1 ? "|" : "<") + std::string(1, kind) + std::to_string(size),
          static_cast<uint32_t>(size)};
}

}  // namespace

Error hdf5_failure(const std::string& attempted) {
  std::string why;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note_error, &why);
  return {EIO, attempted + ": " + (why.empty() ? "HDF5 does not say why" : why)};
}

Error hdf5_damage(const std::string& attempted) {
  const Error error = hdf5_failure(attempted);
  if (error.message.find("filter") != std::string::npos) return error;
  return {EIO, attempted + ": it is damaged or truncated: make it anew, or go back to a copy"};
}

Handle hdf5_type_of(const ArrayType& type) {
  const size_t at = type.name.find_first_not_of("<|");
  const char kind = type.name[at];
  const uint32_t size = type.size_bytes;
  if (type.name == "object" || type.name == "text") return {};
  if (kind == 'f') return float_type(size);
  if (kind == 'c') return complex_type(size);
  if (kind == 'b') return bool_type();
  if (kind == 'S') return string_type(size);
  if (kind == 'V') return of_type(H5Tcreate(H5T_OPAQUE, size));
  const hid_t of_size[2][4] = {{H5T_STD_U8LE, H5T_STD_U16LE, H5T_STD_U32LE, H5T_STD_U64LE},
                               {H5T_STD_I8LE, H5T_STD_I16LE, H5T_STD_I32LE, H5T_STD_I64LE}};
  return of_type(H5Tcopy(of_size[kind == 'i'][size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3]));
}

Hdf5Type parse_hdf5_type(hid_t type) {
  Hdf5Type parsed;
  size_t size = H5Tget_size(type);
  const auto by_type = [&parsed] { parsed.memory = hdf5_type_of(parsed.type); };
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      if (size != 1 && size != 2 && size != 4 && size != 8) break;
      parsed.type = named(H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i', size);
      by_type();
      return parsed;
    case H5T_FLOAT:
      parsed.type = named('f', size == 2 ? 2 : size <= 4 ? 4 : size <= 8 ? 8 : 16);
      by_type();
      return parsed;
    case H5T_ENUM: {
      if (is_bool(type)) {
        parsed.type = {"|b1", 1};
        by_type();
        return parsed;
      }
      const Handle base = of_type(H5Tget_super(type));
      parsed.type = named(H5Tget_sign(base.id()) == H5T_SGN_NONE ? 'u' : 'i', size);
      parsed.memory = of_type(H5Tcopy(type));  // its bytes, in the order of the file
      if (H5Tget_order(base.id()) != H5T_ORDER_LE && size > 1)
        parsed.refusal = "its enumeration has the highest byte first: convert it";
      return parsed;
    }
    case H5T_STRING:
      parsed.is_text = H5Tis_variable_str(type) > 0;
      if (parsed.is_text) return parsed;
      parsed.type = {"S" + std::to_string(size), static_cast<uint32_t>(size)};
      parsed.memory = of_type(H5Tcopy(type));
      H5Tset_strpad(parsed.memory.id(), H5T_STR_NULLPAD);
      return parsed;
    case H5T_COMPOUND:
      if (is_complex(type) && (size == 8 || size == 16 || size == 32)) {
        parsed.type = named('c', size);
        by_type();
        const std::string real = member_name(type, 0);
        if (real != "r") {
          const Handle part = float_type(static_cast<uint32_t>(size / 2));
          parsed.memory = of_type(H5Tcreate(H5T_COMPOUND, size));
          H5Tinsert(parsed.memory.id(), "real", 0, part.id());
          H5Tinsert(parsed.memory.id(), "imag", size / 2, part.id());
        }
        return parsed;
      }
      [[fallthrough]];
    case H5T_OPAQUE:
    case H5T_ARRAY:
      if (!is_plain(type)) break;
      parsed.type = {"V" + std::to_string(size), static_cast<uint32_t>(size)};
      parsed.memory = of_type(H5Tcopy(type));
      return parsed;
    default:
      break;
  }
  parsed.refusal = "its elements are of a type whose bytes mean nothing elsewhere";
  return parsed;
}

namespace {

constexpr const char* kOwn[] = {"CLASS",
                                "NAME",
                                "REFERENCE_LIST",
                                "DIMENSION_LIST",
                                "DIMENSION_LABELS",
                                "_Netcdf4Dimid",
                                "_Netcdf4Coordinates",
                                "_nc3_strict",
                                "_NCProperties"};

std::string joined(const std::vector<std::string>& parts, bool is_one) {
  if (is_one || parts.size() == 1) return parts.empty() ? "" : parts.front();
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return "[" + text + "]";
}

std::string text_of_strings(hid_t attribute, hid_t type, size_t count, bool is_one) {
  std::vector<std::string> parts;
  if (H5Tis_variable_str(type) > 0) {
    std::vector<char*> texts(count, nullptr);
    const Handle memory = of_type(H5Tcopy(type));
    if (H5Aread(attribute, memory.id(), texts.data()) < 0) return {};
    for (char* text : texts) {
      parts.emplace_back(text != nullptr ? text : "");
      H5free_memory(text);
    }
    return joined(parts, is_one);
  }
  const size_t size = H5Tget_size(type);
  std::string bytes(count * size, '\0');
  if (H5Aread(attribute, type, bytes.data()) < 0) return {};
  for (size_t i = 0; i < count; ++i) {
    std::string part = bytes.substr(i * size, size);
    parts.push_back(part.substr(0, part.find('\0')));
  }
  return joined(parts, is_one);
}

template <typename T>
std::string text_of_numbers(hid_t attribute, hid_t memory, size_t count, bool is_one,
                            const char* pattern) {
  std::vector<T> values(count);
  if (H5Aread(attribute, memory, values.data()) < 0) return {};
  std::vector<std::string> parts;
  for (const T value : values) {
    char text[64];
    std::snprintf(text, sizeof text, pattern, value);
    parts.emplace_back(text);
  }
  return joined(parts, is_one);
}

herr_t note_attribute(hid_t object, const char* name, const H5A_info_t*, void* into) {
  constexpr hssize_t kValuesMax = 4096;
  for (const char* own : kOwn)
    if (std::strcmp(own, name) == 0) return 0;
  const Handle attribute = of_attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Handle type = of_type(H5Aget_type(attribute.id()));
  const Handle space = of_space(H5Aget_space(attribute.id()));
  const hssize_t count = H5Sget_simple_extent_npoints(space.id());
  if (count <= 0 || count > kValuesMax) return 0;
  const auto n = static_cast<size_t>(count);
  const bool is_one = H5Sget_simple_extent_ndims(space.id()) == 0;
  std::string text;
  switch (H5Tget_class(type.id())) {
    case H5T_STRING:
      text = text_of_strings(attribute.id(), type.id(), n, is_one);
      break;
    case H5T_INTEGER:
      text = H5Tget_sign(type.id()) == H5T_SGN_NONE
                 ? text_of_numbers<unsigned long long>(attribute.id(), H5T_NATIVE_ULLONG, n, is_one,
                                                       "%llu")
                 : text_of_numbers<long long>(attribute.id(), H5T_NATIVE_LLONG, n, is_one, "%lld");
      break;
    case H5T_FLOAT: {
      const bool is_short = H5Tget_size(type.id()) <= 4;
      text = text_of_numbers<double>(attribute.id(), H5T_NATIVE_DOUBLE, n, is_one,
                                     is_short ? "%.9g" : "%.17g");
      break;
    }
    case H5T_ENUM:
      if (is_bool(type.id()))
        text = text_of_numbers<int8_t>(attribute.id(), type.id(), n, is_one, "%d");
      break;
    default:
      break;  // references and the like
  }
  if (!text.empty()) (*static_cast<Texts*>(into))[name] = text;
  return 0;
}

}  // namespace

Texts load_hdf5_attributes(hid_t object) {
  Texts texts;
  H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, note_attribute, &texts);
  return texts;
}

Status store_hdf5_attribute(hid_t object, const std::string& key, const std::string& text) {
  const Handle type = of_type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.id(), H5T_VARIABLE);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  const Handle space = of_space(H5Screate(H5S_SCALAR));
  const Handle properties = of_properties(H5Pcreate(H5P_ATTRIBUTE_CREATE));
  H5Pset_char_encoding(properties.id(), H5T_CSET_UTF8);
  const Handle attribute = of_attribute(
      H5Acreate2(object, key.c_str(), type.id(), space.id(), properties.id(), H5P_DEFAULT));
  const char* const value = text.c_str();
  if (attribute.ok() && H5Awrite(attribute.id(), type.id(), &value) >= 0) return {};
  return hdf5_failure("set the attribute '" + key + "'");
}

}  // namespace outcore::cli
