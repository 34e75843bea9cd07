// HDF5: datasets and their attributes, by its library. See arrays/commands/array_file.h.
#include <algorithm>

#include "arrays/commands/array_box.h"
#include "arrays/commands/array_pieces.h"
#include "arrays/formats/hdf5_handles.h"

namespace outcore::cli {
namespace {

constexpr uint64_t kAttributeBytesMax = 60 << 10;  // what fits beside a dataset
constexpr unsigned kDeflateLevel = 4;              // of arrays that are compressed here, too

Handle open_file(const std::string& path) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  return {H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose};
}

std::vector<hsize_t> sizes_of(const Dims& dims) { return {dims.begin(), dims.end()}; }

class Hdf5Reader final : public ArrayReader {
 public:
  Status open(const std::string& path) {
    path_ = path;
    file_ = open_file(path);
    if (!file_.ok() && H5Fis_hdf5(path.c_str()) <= 0)
      return Error{EINVAL, "open " + path + ": it is not an HDF5 file: name another"};
    if (!file_.ok()) return hdf5_damage("open " + path);
    attributes_ = load_hdf5_attributes(file_.id());
    const auto visit = [](hid_t, const char* name, const H5O_info_t* facts, void* of) -> herr_t {
      auto* const reader = static_cast<Hdf5Reader*>(of);
      if (facts->type != H5O_TYPE_DATASET) return 0;
      reader->status_ = reader->add(name);
      return reader->status_.ok() ? 0 : 1;
    };
    const herr_t visited =
        H5Ovisit2(file_.id(), H5_INDEX_NAME, H5_ITER_NATIVE, visit, this, H5O_INFO_BASIC);
    if (visited < 0) return hdf5_damage("look into " + path);
    return status_;
  }

 private:
  struct Set {
    Handle set, memory;
  };

  Status add(const std::string& name) {
    Set one;
    one.set = of_set(H5Dopen2(file_.id(), name.c_str(), H5P_DEFAULT));
    if (!one.set.ok()) return hdf5_damage("open '" + name + "' in " + path_);
    const Handle type = of_type(H5Dget_type(one.set.id()));
    const Handle space = of_space(H5Dget_space(one.set.id()));
    Hdf5Type parsed = parse_hdf5_type(type.id());
    FileArray array;
    array.info.name = name;
    array.info.type = parsed.type;
    array.refusal = parsed.refusal;
    array.attributes = load_hdf5_attributes(one.set.id());
    if (H5Sget_simple_extent_type(space.id()) == H5S_NULL)
      array.refusal = "it has a type, and no elements";
    const int rank = H5Sget_simple_extent_ndims(space.id());
    std::vector<hsize_t> dims(static_cast<size_t>(std::max(rank, 0)));
    if (rank > 0) H5Sget_simple_extent_dims(space.id(), dims.data(), nullptr);
    array.info.dims.assign(dims.begin(), dims.end());
    const Handle properties = of_properties(H5Dget_create_plist(one.set.id()));
    if (rank > 0 && H5Pget_layout(properties.id()) == H5D_CHUNKED &&
        H5Pget_chunk(properties.id(), rank, dims.data()) == rank)
      array.info.tiles.assign(dims.begin(), dims.end());
    array.info.size_bytes = count_of(array.info.dims) * parsed.type.size_bytes;
    if (parsed.is_text && rank != 0)
      array.refusal = "its elements are texts of any length: convert it to fixed ones";
    const size_t index = arrays_.size();
    const bool is_text = parsed.is_text && array.refusal.empty();
    one.memory = std::move(parsed.memory);
    arrays_.push_back(std::move(array));
    sets_.push_back(std::move(one));
    return is_text ? read_text(index, type.id()) : Status();
  }

  Status read_text(size_t index, hid_t type) {
    const Handle memory = of_type(H5Tcopy(type));
    char* text = nullptr;
    if (H5Dread(sets_[index].set.id(), memory.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &text) < 0)
      return hdf5_damage("read '" + arrays_[index].info.name + "' of " + path_);
    set_text(index, text != nullptr ? text : "");
    H5free_memory(text);
    return {};
  }

  Status load_piece(size_t index, const Dims& offsets, const Dims& dims, void* into) override {
    const Set& one = sets_[index];
    const Handle space = of_space(H5Dget_space(one.set.id()));
    const auto from = sizes_of(offsets), count = sizes_of(dims);
    const Handle box = of_space(
        dims.empty() ? H5Screate(H5S_SCALAR)
                     : H5Screate_simple(static_cast<int>(dims.size()), count.data(), nullptr));
    if (!dims.empty())
      H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, from.data(), nullptr, count.data(), nullptr);
    if (H5Dread(one.set.id(), one.memory.id(), box.id(), space.id(), H5P_DEFAULT, into) < 0)
      return hdf5_damage("read '" + arrays_[index].info.name + "' of " + path_);
    return {};
  }

  std::string path_;
  Handle file_;
  std::vector<Set> sets_;
  Status status_;
};

class Hdf5Writer final : public ArrayWriter {
 public:
  Status open(const std::string& path) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    path_ = path;
    file_ = {H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), H5Fclose};
    return file_.ok() ? Status() : hdf5_failure("create " + path);
  }

  Status check(const FileArray& array) const override {
    if (array.info.type.name == "object")
      return Error{EINVAL, "it holds an object of a program, which only that can read"};
    for (const auto& [key, text] : array.attributes)
      if (text.size() > kAttributeBytesMax)
        return Error{EINVAL, "its attribute '" + key + "' is too long for HDF5"};
    if (array.info.dims.size() > H5S_MAX_RANK)
      return Error{EINVAL, "HDF5 has at most 32 dimensions"};
    return {};
  }

  Status set_attributes(const Texts& attributes) override {
    for (const auto& [key, text] : attributes)
      if (Status s = store_hdf5_attribute(file_.id(), key, text); !s) return s;
    return {};
  }

  Status add(const FileArray& array, const LoadBox& load) override {
    const ArrayInfo& info = array.info;
    const bool is_one_text = info.type.name == "text";
    std::string text;
    if (is_one_text) {
      auto loaded = load_text(info, load);
      if (!loaded) return loaded.error();
      text = std::move(loaded).value();
    }
    const Handle type = is_one_text ? text_type(text) : hdf5_type_of(info.type);
    const Dims dims = is_one_text ? Dims() : info.dims;
    const auto sizes = sizes_of(dims);
    const Handle space = of_space(
        dims.empty() ? H5Screate(H5S_SCALAR)
                     : H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr));
    const Handle links = of_properties(H5Pcreate(H5P_LINK_CREATE));
    H5Pset_create_intermediate_group(links.id(), 1);
    H5Pset_char_encoding(links.id(), H5T_CSET_UTF8);
    const Handle layout = of_properties(H5Pcreate(H5P_DATASET_CREATE));
    if (!is_one_text) H5Pset_fill_time(layout.id(), H5D_FILL_TIME_NEVER);
    if (is_tiled(info)) {
      const auto tiles = sizes_of(info.tiles);
      H5Pset_chunk(layout.id(), static_cast<int>(tiles.size()), tiles.data());
      if (!info.compress.empty() && H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0) {
        H5Pset_shuffle(layout.id());
        H5Pset_deflate(layout.id(), kDeflateLevel);
      }
    }
    const Handle set = of_set(H5Dcreate2(file_.id(), info.name.c_str(), type.id(), space.id(),
                                         links.id(), layout.id(), H5P_DEFAULT));
    if (!set.ok()) return hdf5_failure("make '" + info.name + "' in " + path_);
    for (const auto& [key, value] : array.attributes)
      if (Status s = store_hdf5_attribute(set.id(), key, value); !s) return s;
    if (!is_one_text) return write(set.id(), type.id(), info, in_rows(info, load));
    const char* const first = text.c_str();
    const bool is_variable = H5Tis_variable_str(type.id()) > 0;
    const void* const data = is_variable ? static_cast<const void*>(&first) : first;
    if (H5Dwrite(set.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
      return hdf5_failure("write '" + info.name + "' of " + path_);
    return {};
  }

  Status finish() override {
    if (H5Fflush(file_.id(), H5F_SCOPE_GLOBAL) < 0) return hdf5_failure("write " + path_);
    file_ = Handle();
    return {};
  }

 private:
  // Chunks of HDF5 have less than 4 GiB.
  static bool is_tiled(const ArrayInfo& info) {
    return !info.tiles.empty() && count_of(info.dims) != 0 &&
           count_of(info.tiles) * info.type.size_bytes < (uint64_t{1} << 32);
  }

  // A zero within it would end one of variable length.
  static Handle text_type(const std::string& text) {
    Handle type = of_type(H5Tcopy(H5T_C_S1));
    H5Tset_size(type.id(), text.find('\0') == std::string::npos ? H5T_VARIABLE : text.size());
    H5Tset_cset(type.id(), H5T_CSET_UTF8);
    if (text.find('\0') != std::string::npos) H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
    return type;
  }

  Status write(hid_t set, hid_t type, const ArrayInfo& info, const LoadBox& load) const {
    ArrayInfo in_order = info;
    in_order.order = Order::kRow;
    ArrayPieces pieces(in_order);
    std::string bytes;
    const Handle space = of_space(H5Dget_space(set));
    for (Dims offsets, dims; pieces.next(&offsets, &dims);) {
      bytes.resize(count_of(dims) * info.type.size_bytes);
      if (Status s = load(offsets, dims, bytes.data()); !s) return s;
      const auto from = sizes_of(offsets), count = sizes_of(dims);
      const Handle box = of_space(
          dims.empty() ? H5Screate(H5S_SCALAR)
                       : H5Screate_simple(static_cast<int>(dims.size()), count.data(), nullptr));
      if (!dims.empty())
        H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, from.data(), nullptr, count.data(),
                            nullptr);
      if (H5Dwrite(set, type, box.id(), space.id(), H5P_DEFAULT, bytes.data()) < 0)
        return hdf5_failure("write '" + info.name + "' of " + path_);
    }
    return {};
  }

  std::string path_;
  Handle file_;
};

}  // namespace
}  // namespace outcore::cli

extern "C" const outcore::cli::ArrayFormat* outcore_array_format() {
  // A file that could not be written stays open in the library, which would crash over it at exit.
  H5dont_atexit();
  static constexpr auto kHdf5 =
      outcore::cli::format_of<outcore::cli::Hdf5Reader, outcore::cli::Hdf5Writer>("HDF5", true,
                                                                                  false, true);
  return &kHdf5;
}
