// ArrayFile: a file of another format that holds arrays: .npy, .npz, HDF5, NetCDF, Zarr.
//
// Data is copied in pieces (ArrayPieces), so that an array need not fit into memory. Boxes are
// dense, in the order that the array's info gives. Formats that need a library are modules of their
// own, in arrays/formats/, which are loaded when they are needed: so the command starts without
// them. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "outcore/arrays.h"

namespace outcore::cli {

using Texts = std::map<std::string, std::string>;

// The attribute with the names of the dimensions, such as "time y x", as Python's xarray uses it.
inline constexpr const char* kDimsNote = "dimensions";

struct FileArray {
  ArrayInfo info;  // tiles: the chunks of the format; multiples of them are fastest
  Texts attributes;
  std::string refusal;  // why it cannot be imported; empty: it can
  bool is_read_forward =
      false;  // to read a box, all data before it is read: boxes in order are fastest
};

// The names of the dimensions: from kDimsNote, or "dim_SIZE"; each name once.
std::vector<std::string> dimension_names(const FileArray& array);

// Loads the elements of a box. REQUIRES: `into` has room for them.
using LoadBox = std::function<Status(const Dims& offsets, const Dims& dims, void* into)>;

class ArrayReader {
 public:
  virtual ~ArrayReader() = default;
  const std::vector<FileArray>& arrays() const { return arrays_; }
  const Texts& attributes() const { return attributes_; }  // of the file
  // Loads any box; the pieces of pieces_between(), in their order, are fastest. REQUIRES:
  // arrays()[index].refusal is empty.
  Status load(size_t index, const Dims& offsets, const Dims& dims, void* into);

 protected:
  virtual Status load_piece(size_t index, const Dims& offsets, const Dims& dims, void* into) = 0;
  // Sets a text that is known already.
  void set_text(size_t index, std::string text);

  std::vector<FileArray> arrays_;
  Texts attributes_;

 private:
  std::map<size_t, std::string> texts_;
};

class ArrayWriter {
 public:
  virtual ~ArrayWriter() = default;
  // Checks, before anything is written, whether the format can hold the array. EINVAL: what it
  // cannot hold, and what would do.
  virtual Status check(const FileArray& array) const = 0;
  virtual Status set_attributes(const Texts& attributes) = 0;  // of the file
  // `load` may be called until finish() has returned.
  virtual Status add(const FileArray& array, const LoadBox& load) = 0;
  virtual Status finish() = 0;
};

struct ArrayFormat {
  const char* name;     // "HDF5"
  bool has_many;        // more than one array in a file
  bool is_folder;       // Zarr
  bool has_attributes;  // attributes can be kept with arrays
  Result<std::unique_ptr<ArrayReader>> (*open)(const std::string& path);
  // REQUIRES: nothing exists at the path.
  Result<std::unique_ptr<ArrayWriter>> (*create)(const std::string& path);
};

// Makes a format of its two classes, which have `Status open(const std::string& path)`.
template <typename Made, typename Known>
Result<std::unique_ptr<Known>> open_as(const std::string& path) {
  auto made = std::make_unique<Made>();
  if (Status s = made->open(path); !s) return s.error();
  return std::unique_ptr<Known>(std::move(made));
}
template <typename Reader, typename Writer>
constexpr ArrayFormat format_of(const char* name, bool has_many, bool is_folder,
                                bool has_attributes) {
  return {name,
          has_many,
          is_folder,
          has_attributes,
          open_as<Reader, ArrayReader>,
          open_as<Writer, ArrayWriter>};
}

// Chosen by the ending of the path, or by what exists there. Errors: EINVAL (an unknown ending),
// ENOTSUP (the format's library was missing when this was built, or is missing now).
Result<const ArrayFormat*> array_format_of(const std::string& path);

// The entry function of a module of arrays/formats/, outcore_NAME.so. `package`: what is needed to
// build the module.
Result<void*> load_module(const std::string& name, const std::string& package,
                          const std::string& function);

const ArrayFormat& npy_format();

}  // namespace outcore::cli
