// Hdf5Handles: HDF5's identifiers, closed when they go, its types for ours, and its own words for
// what failed.
#pragma once

#define H5_USE_110_API
#include <hdf5.h>

#include <cerrno>
#include <string>
#include <utility>

#include "arrays/commands/array_file.h"

namespace outcore::cli {

class Handle {
 public:
  Handle() = default;
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept { *this = std::move(other); }
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t id() const { return id_; }
  bool ok() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

inline Handle of_type(hid_t id) { return {id, H5Tclose}; }
inline Handle of_space(hid_t id) { return {id, H5Sclose}; }
inline Handle of_properties(hid_t id) { return {id, H5Pclose}; }
inline Handle of_set(hid_t id) { return {id, H5Dclose}; }
inline Handle of_attribute(hid_t id) { return {id, H5Aclose}; }

// What failed last, as HDF5 says it.
Error hdf5_failure(const std::string& attempted);
// The same of a file that is read, which is damaged, or needs a filter that is missing.
Error hdf5_damage(const std::string& attempted);

// In memory and in files: as h5py has them, for complex numbers, bool and halves. An invalid
// handle: HDF5 has none.
Handle hdf5_type_of(const ArrayType& type);
// The container's type for one of a file, or why there is none in `refusal`. `memory`: what to read
// it as. is_text: one text of any length.
struct Hdf5Type {
  ArrayType type;
  Handle memory;
  bool is_text = false;
  std::string refusal;
};
Hdf5Type parse_hdf5_type(hid_t type);

// The attributes of a file, group or dataset, numbers as texts; without those that are HDF5's and
// NetCDF's own.
Texts load_hdf5_attributes(hid_t object);
Status store_hdf5_attribute(hid_t object, const std::string& key, const std::string& text);

}  // namespace outcore::cli
