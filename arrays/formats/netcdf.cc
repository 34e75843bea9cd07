// NetCDF: variables and their attributes, of groups too, by its library. See
// arrays/commands/array_file.h.
#include <netcdf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "arrays/commands/array_box.h"
#include "arrays/commands/array_file.h"
#include "arrays/commands/array_pieces.h"
#include "arrays/formats/netcdf_attributes.h"

namespace outcore::cli {
namespace {

constexpr int kDeflateLevel = 4;  // of arrays that are compressed here, too

Error failed(int code, const std::string& attempted) {
  return {code > 0 ? code : EIO, attempted + ": " + nc_strerror(code)};
}

Error failed_read(int code, const std::string& attempted) {
  if (code != NC_EHDFERR) return failed(code, attempted);
  return {EIO, attempted + ": it is damaged or truncated: make it anew, or go back to a copy"};
}

struct Type {
  nc_type code;
  ArrayType type;
};
const Type kTypes[] = {{NC_BYTE, {"|i1", 1}},   {NC_UBYTE, {"|u1", 1}},  {NC_SHORT, {"<i2", 2}},
                       {NC_USHORT, {"<u2", 2}}, {NC_INT, {"<i4", 4}},    {NC_UINT, {"<u4", 4}},
                       {NC_INT64, {"<i8", 8}},  {NC_UINT64, {"<u8", 8}}, {NC_FLOAT, {"<f4", 4}},
                       {NC_DOUBLE, {"<f8", 8}}};

bool is_string(const ArrayType& type) { return type.name[0] == 'S'; }

class NetcdfReader final : public ArrayReader {
 public:
  ~NetcdfReader() override {
    if (file_ >= 0) nc_close(file_);
  }
  Status open(const std::string& path) {
    path_ = path;
    if (::access(path.c_str(), R_OK) != 0)  // NetCDF would take it for an address
      return Error{errno, "open " + path + ": " + ::strerrordesc_np(errno)};
    if (const int code = nc_open(path.c_str(), NC_NOWRITE, &file_); code != NC_NOERR) {
      file_ = -1;
      if (code == NC_ENOTNC)
        return Error{EINVAL,
                     "open " + path + ": it is not a NetCDF file, or its beginning is damaged"};
      return failed_read(code, "open " + path);
    }
    attributes_ = load_netcdf_attributes(file_, NC_GLOBAL);
    return look(file_, "", 0);
  }

 private:
  struct Variable {
    int group = 0, number = 0;
    bool has_letters = false;  // its last dimension is that of a string
  };

  Status look(int group, const std::string& prefix, int depth) {
    constexpr int kDepthMax = 32;
    int count = 0;
    nc_inq_varids(group, &count, nullptr);
    std::vector<int> numbers(static_cast<size_t>(count));
    nc_inq_varids(group, &count, numbers.data());
    for (const int number : numbers)
      if (Status s = add(group, number, prefix); !s) return s;
    nc_inq_grps(group, &count, nullptr);
    numbers.resize(static_cast<size_t>(count));
    nc_inq_grps(group, &count, numbers.data());
    for (const int inner : numbers) {
      char name[NC_MAX_NAME + 1] = "";
      nc_inq_grpname(inner, name);
      if (depth == kDepthMax) break;
      if (Status s = look(inner, prefix + name + "/", depth + 1); !s) return s;
    }
    return {};
  }

  Status add(int group, int number, const std::string& prefix) {
    char name[NC_MAX_NAME + 1] = "";
    nc_type type = 0;
    int rank = 0, dimensions[NC_MAX_VAR_DIMS];
    if (const int code = nc_inq_var(group, number, name, &type, &rank, dimensions, nullptr);
        code != NC_NOERR)
      return failed_read(code, "look into " + path_);
    FileArray array;
    array.info.name = prefix + name;
    array.attributes = load_netcdf_attributes(group, number);
    Variable variable{group, number, false};
    std::string names;
    for (int d = 0; d < rank; ++d) {
      size_t size = 0;
      char dimension[NC_MAX_NAME + 1] = "";
      nc_inq_dim(group, dimensions[d], dimension, &size);
      array.info.dims.push_back(size);
      if (type != NC_CHAR || d + 1 < rank) names += (d == 0 ? "" : " ") + std::string(dimension);
    }
    set_type(type, &array, &variable);
    if (!names.empty() && !names.starts_with("dim_")) array.attributes[kDimsNote] = names;
    set_tiles(group, number, &array);
    const size_t index = arrays_.size();
    const bool is_text = type == NC_STRING && array.refusal.empty();
    array.info.size_bytes = count_of(array.info.dims) * array.info.type.size_bytes;
    arrays_.push_back(std::move(array));
    variables_.push_back(variable);
    if (!is_text) return {};
    char* text = nullptr;
    if (const int code = nc_get_var_string(group, number, &text); code != NC_NOERR)
      return failed_read(code, "read '" + arrays_[index].info.name + "' of " + path_);
    set_text(index, text != nullptr ? text : "");
    nc_free_string(1, &text);
    return {};
  }

  static void set_type(nc_type type, FileArray* array, Variable* variable) {
    ArrayInfo& info = array->info;
    if (type == NC_CHAR) {
      uint64_t size = 1;
      variable->has_letters = !info.dims.empty();
      if (variable->has_letters) {
        size = info.dims.back();
        info.dims.pop_back();
      }
      if (size == 0 || size > (1 << 20)) array->refusal = "its texts have 0 or more than 1 MiB";
      info.type = {"S" + std::to_string(size), static_cast<uint32_t>(size)};
      return;
    }
    for (const Type& known : kTypes)
      if (known.code == type) info.type = known.type;
    const auto noted = array->attributes.find("dtype");  // as xarray writes it
    if (type == NC_BYTE && noted != array->attributes.end() && noted->second == "bool") {
      info.type = {"|b1", 1};
      array->attributes.erase(noted);
    }
    if (type == NC_STRING && !info.dims.empty())
      array->refusal = "its elements are texts of any length: convert it to characters";
    else if (type != NC_STRING && info.type.size_bytes == 0)
      array->refusal = "its type is one of the file's own";
  }

  static void set_tiles(int group, int number, FileArray* array) {
    int storage = NC_CONTIGUOUS;
    size_t chunks[NC_MAX_VAR_DIMS];
    if (nc_inq_var_chunking(group, number, &storage, chunks) == NC_NOERR && storage == NC_CHUNKED)
      array->info.tiles.assign(chunks, chunks + array->info.dims.size());
  }

  Status load_piece(size_t index, const Dims& offsets, const Dims& dims, void* into) override {
    const Variable& variable = variables_[index];
    std::vector<size_t> from(offsets.begin(), offsets.end()), count(dims.begin(), dims.end());
    if (variable.has_letters) {
      from.push_back(0);
      count.push_back(arrays_[index].info.type.size_bytes);
    }
    const int code = nc_get_vara(variable.group, variable.number, from.data(), count.data(), into);
    return code == NC_NOERR
               ? Status()
               : failed_read(code, "read '" + arrays_[index].info.name + "' of " + path_);
  }

  std::string path_;
  int file_ = -1;
  std::vector<Variable> variables_;
};

class NetcdfWriter final : public ArrayWriter {
 public:
  ~NetcdfWriter() override {
    if (file_ >= 0) nc_abort(file_);
  }
  Status open(const std::string& path) {
    path_ = path;
    const int code = nc_create(path.c_str(), NC_NETCDF4 | NC_NOCLOBBER, &file_);
    if (code == NC_NOERR) return {};
    file_ = -1;
    return failed(code, "create " + path);
  }

  Status check(const FileArray& array) const override {
    const ArrayType& type = array.info.type;
    if (type.name == "object")
      return Error{EINVAL, "it holds an object of a program, which only that can read"};
    if (type.name == "text" || type.name == "|b1" || is_string(type)) return {};
    for (const Type& known : kTypes)
      if (known.type == type) return {};
    return Error{EINVAL, "NetCDF has no " + type.name + ": take HDF5, or convert it"};
  }

  Status set_attributes(const Texts& attributes) override {
    for (const auto& [key, text] : attributes)
      if (Status s = set_attribute(file_, NC_GLOBAL, NC_CHAR, key, text); !s) return s;
    return {};
  }

  Status add(const FileArray& array, const LoadBox& load) override {
    const ArrayInfo& info = array.info;
    const std::string attempted = "make '" + info.name + "' in " + path_;
    const bool is_text = info.type.name == "text";
    int group = file_, variable = 0;
    std::string name;
    if (Status s = enter_groups(info.name, &group, &name); !s) return s;
    std::vector<int> dimensions;
    if (!is_text)
      if (Status s = make_dimensions(array, &dimensions); !s) return s;
    nc_type type = is_text ? NC_STRING : is_string(info.type) ? NC_CHAR : NC_BYTE;
    for (const Type& known : kTypes)
      if (known.type == info.type) type = known.code;
    int code = nc_def_var(group, name.c_str(), type, static_cast<int>(dimensions.size()),
                          dimensions.data(), &variable);
    if (code != NC_NOERR) return failed(code, attempted);
    if (!is_text && !dimensions.empty()) set_storage(group, variable, info);
    for (const auto& [key, text] : array.attributes)
      if (key != kDimsNote)
        if (Status s = set_attribute(group, variable, type, key, text); !s) return s;
    if (info.type.name == "|b1")
      if (Status s = set_attribute(group, variable, NC_CHAR, "dtype", "bool"); !s) return s;
    if (is_text) return write_text(group, variable, info, load);
    return write(group, variable, info, in_rows(info, load));
  }

  Status finish() override {
    const int code = nc_close(file_);
    file_ = -1;
    return code == NC_NOERR ? Status() : failed(code, "write " + path_);
  }

 private:
  // Numbers of the conventions for climate data are numbers again, of the variable's type.
  Status set_attribute(int group, int variable, nc_type type, const std::string& key,
                       const std::string& text) const {
    const bool is_fill =
        key == "_FillValue" || key == "missing_value" || key == "valid_min" || key == "valid_max";
    const bool is_number = is_fill || key == "scale_factor" || key == "add_offset";
    double value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_parsed = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
    int code = NC_NOERR;
    if (variable != NC_GLOBAL && is_number && is_parsed && type != NC_CHAR && type != NC_STRING)
      code = is_fill ? put_number(group, variable, type, key, text, value)
                     : nc_put_att_double(group, variable, key.c_str(), NC_DOUBLE, 1, &value);
    else if (key == "_FillValue" || key.starts_with("_Nc"))
      return {};  // NetCDF's own
    else
      code = nc_put_att_text(group, variable, key.c_str(), text.size(), text.data());
    if (code == NC_NOERR) return {};
    return failed(code, "set the attribute '" + key + "' in " + path_);
  }

  // Whole numbers of 64 bits are none of a double.
  static int put_number(int group, int variable, nc_type type, const std::string& key,
                        const std::string& text, double value) {
    const char* const end = text.data() + text.size();
    long long number = 0;
    unsigned long long natural = 0;
    if (type == NC_INT64 && std::from_chars(text.data(), end, number).ptr == end)
      return nc_put_att_longlong(group, variable, key.c_str(), type, 1, &number);
    if (type == NC_UINT64 && std::from_chars(text.data(), end, natural).ptr == end)
      return nc_put_att_ulonglong(group, variable, key.c_str(), type, 1, &natural);
    return nc_put_att_double(group, variable, key.c_str(), type, 1, &value);
  }

  Status enter_groups(const std::string& path, int* group, std::string* name) const {
    std::string rest = path;
    for (size_t slash = 0; (slash = rest.find('/')) != std::string::npos;) {
      const std::string part = rest.substr(0, slash);
      rest = rest.substr(slash + 1);
      int inner = 0;
      if (nc_inq_grp_ncid(*group, part.c_str(), &inner) != NC_NOERR)
        if (const int code = nc_def_grp(*group, part.c_str(), &inner); code != NC_NOERR)
          return failed(code, "make the group '" + part + "' in " + path_);
      *group = inner;
    }
    *name = rest;
    return {};
  }

  Status make_dimensions(const FileArray& array, std::vector<int>* dimensions) const {
    Dims dims = array.info.dims;
    std::vector<std::string> names = dimension_names(array);
    if (is_string(array.info.type)) {
      dims.push_back(array.info.type.size_bytes);
      names.push_back("letters_" + std::to_string(dims.back()));
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      int number = -1;
      const std::string& wanted = names[d];
      for (int attempt = 1; number < 0; ++attempt) {
        const std::string name = attempt == 1 ? wanted : wanted + "_" + std::to_string(attempt);
        if (Status s = find_dimension(name, dims[d], &number); !s) return s;
        // One that has another size, or is this array's already, is not the one.
        if (std::find(dimensions->begin(), dimensions->end(), number) != dimensions->end())
          number = -1;
      }
      dimensions->push_back(number);
    }
    return {};
  }

  // Of this name and size, made if there is none of the name; -1: it has another size.
  Status find_dimension(const std::string& name, uint64_t size, int* number) const {
    size_t there = 0;
    if (nc_inq_dimid(file_, name.c_str(), number) == NC_NOERR) {
      if (nc_inq_dimlen(file_, *number, &there) != NC_NOERR || there != size) *number = -1;
      return {};
    }
    const int code = nc_def_dim(file_, name.c_str(), size, number);
    return code == NC_NOERR ? Status()
                            : failed(code, "make the dimension '" + name + "' in " + path_);
  }

  static void set_storage(int group, int variable, const ArrayInfo& info) {
    if (count_of(info.dims) == 0) return;
    nc_def_var_fill(group, variable, NC_NOFILL, nullptr);
    std::vector<size_t> chunks(info.tiles.begin(), info.tiles.end());
    if (is_string(info.type)) chunks.push_back(info.type.size_bytes);
    if (info.tiles.empty() || count_of(info.tiles) * info.type.size_bytes >= (uint64_t{1} << 32)) {
      nc_def_var_chunking(group, variable, NC_CONTIGUOUS, nullptr);
      return;
    }
    nc_def_var_chunking(group, variable, NC_CHUNKED, chunks.data());
    if (!info.compress.empty()) nc_def_var_deflate(group, variable, 1, 1, kDeflateLevel);
  }

  Status write_text(int group, int variable, const ArrayInfo& info, const LoadBox& load) const {
    const auto text = load_text(info, load);
    if (!text) return text.error();
    if (text->find('\0') != std::string::npos)
      return Error{EINVAL, "'" + info.name + "' has zeros within: NetCDF's texts end at the first"};
    const char* const first = text->c_str();
    const int code = nc_put_var_string(group, variable, const_cast<const char**>(&first));
    return code == NC_NOERR ? Status() : failed(code, "write '" + info.name + "' of " + path_);
  }

  Status write(int group, int variable, const ArrayInfo& info, const LoadBox& load) const {
    ArrayInfo in_order = info;
    in_order.order = Order::kRow;
    ArrayPieces pieces(in_order);
    std::string bytes;
    for (Dims offsets, dims; pieces.next(&offsets, &dims);) {
      bytes.resize(count_of(dims) * info.type.size_bytes);
      if (Status s = load(offsets, dims, bytes.data()); !s) return s;
      std::vector<size_t> from(offsets.begin(), offsets.end()), count(dims.begin(), dims.end());
      if (is_string(info.type)) {
        from.push_back(0);
        count.push_back(info.type.size_bytes);
      }
      const int code = nc_put_vara(group, variable, from.data(), count.data(), bytes.data());
      if (code != NC_NOERR) return failed(code, "write '" + info.name + "' of " + path_);
    }
    return {};
  }

  std::string path_;
  int file_ = -1;
};

}  // namespace
}  // namespace outcore::cli

// Of the HDF5 that NetCDF uses, if it uses any.
extern "C" int H5dont_atexit() __attribute__((weak));

extern "C" const outcore::cli::ArrayFormat* outcore_array_format() {
  // A file that could not be written stays open in HDF5, which would crash over it at exit.
  if (H5dont_atexit != nullptr) H5dont_atexit();
  static constexpr auto kNetcdf =
      outcore::cli::format_of<outcore::cli::NetcdfReader, outcore::cli::NetcdfWriter>(
          "NetCDF", true, false, true);
  return &kNetcdf;
}
