// HDF5: one file by MPI-IO, a contiguous dataset for each variable, collective transfers.
#include <hdf5.h>

#include "bench/rivals/rival.h"

namespace outcore::rivals {
namespace {

std::vector<hsize_t> of_hdf5(const Dims& dims) { return {dims.begin(), dims.end()}; }

class Hdf5 final : public Rival {
 public:
  std::string name() const override { return "hdf5"; }
  std::string version() const override {
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
  }
  std::vector<std::string> files(const Work& work, unsigned) const override { return {path(work)}; }

  void write(const Work& work, const Data& data) override {
    const hid_t access = parallel_access();
    const hid_t file = H5Fcreate(path(work).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fill_time(create, H5D_FILL_TIME_NEVER);  // all of it is written
    const hid_t transfer = collective();
    require(file >= 0, "H5Fcreate");
    for (size_t v = 0; v < kVariables.size(); ++v) {
      const Box box = work.box(kVariables[v], work.rank, Division::kBoxes);
      const auto shape = of_hdf5(work.shape(kVariables[v]));
      const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
      const hid_t set = H5Dcreate(file, kVariables[v].name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT,
                                  create, H5P_DEFAULT);
      const hid_t here = select(space, box);
      require(H5Dwrite(set, H5T_NATIVE_DOUBLE, here, space, transfer, data[v].data()) >= 0,
              "H5Dwrite");
      H5Sclose(here);
      H5Dclose(set);
      H5Sclose(space);
    }
    H5Pclose(transfer);
    H5Pclose(create);
    require(H5Fclose(file) >= 0, "H5Fclose");
    H5Pclose(access);
  }
  void read(const Work& work, Division division, Data* data) override {
    const hid_t access = parallel_access();
    const hid_t file = H5Fopen(path(work).c_str(), H5F_ACC_RDONLY, access);
    const hid_t transfer = collective();
    require(file >= 0, "H5Fopen");
    for (size_t v = 0; v < kVariables.size(); ++v) {
      const hid_t set = H5Dopen(file, kVariables[v].name, H5P_DEFAULT);
      const hid_t space = H5Dget_space(set);
      const hid_t here = select(space, work.box(kVariables[v], work.rank, division));
      require(H5Dread(set, H5T_NATIVE_DOUBLE, here, space, transfer, (*data)[v].data()) >= 0,
              "H5Dread");
      H5Sclose(here);
      H5Sclose(space);
      H5Dclose(set);
    }
    H5Pclose(transfer);
    H5Fclose(file);
    H5Pclose(access);
  }

 private:
  static std::string path(const Work& work) { return work.path("s3d.h5"); }
  static hid_t parallel_access() {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    require(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0, "H5Pset_fapl_mpio");
    return access;
  }
  static hid_t collective() {
    const hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    return transfer;
  }
  // The box in the file's space; returns that of memory.
  static hid_t select(hid_t space, const Box& box) {
    const auto at = of_hdf5(box.at), dims = of_hdf5(box.dims);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, at.data(), nullptr, dims.data(), nullptr);
    return H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
  }
};

}  // namespace

std::unique_ptr<Rival> make_rival() { return std::make_unique<Hdf5>(); }

}  // namespace outcore::rivals
