// PnetCDF: one file of the classic format with 64-bit sizes (CDF-5), whose numbers are big-endian;
// nonblocking calls that one collective wait carries out.
#include <pnetcdf.h>

#include "bench/rivals/rival.h"

namespace outcore::rivals {
namespace {

void done(int status, const char* what) {
  if (status != NC_NOERR) fail(std::string(what) + ": " + ncmpi_strerror(status));
}

std::vector<MPI_Offset> of_pnetcdf(const Dims& dims) { return {dims.begin(), dims.end()}; }

class PnetCdf final : public Rival {
 public:
  std::string name() const override { return "pnetcdf"; }
  std::string version() const override {  // "1.12.3 of ..."
    const std::string words = ncmpi_inq_libvers();
    return words.substr(0, words.find(' '));
  }
  std::vector<std::string> files(const Work& work, unsigned) const override { return {path(work)}; }

  void write(const Work& work, const Data& data) override {
    int file = 0, grid[3] = {}, ids[kVariables.size()] = {};
    done(ncmpi_create(MPI_COMM_WORLD, path(work).c_str(), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL,
                      &file),
         "ncmpi_create");
    for (int d = 0; d < 3; ++d)
      done(ncmpi_def_dim(file, std::string(1, static_cast<char>('x' + d)).c_str(),
                         static_cast<MPI_Offset>(work.side), &grid[d]),
           "ncmpi_def_dim");
    for (size_t v = 0; v < kVariables.size(); ++v) {
      int dims[4] = {0, grid[0], grid[1], grid[2]};
      const bool has_components = kVariables[v].components > 1;
      if (has_components) {
        const std::string of_it = std::string(kVariables[v].name) + "_components";
        done(ncmpi_def_dim(file, of_it.c_str(), static_cast<MPI_Offset>(kVariables[v].components),
                           &dims[0]),
             "ncmpi_def_dim");
      }
      done(ncmpi_def_var(file, kVariables[v].name, NC_DOUBLE, has_components ? 4 : 3,
                         has_components ? dims : dims + 1, &ids[v]),
           "ncmpi_def_var");
    }
    done(ncmpi_enddef(file), "ncmpi_enddef");
    int requests[kVariables.size()] = {}, results[kVariables.size()] = {};
    for (size_t v = 0; v < kVariables.size(); ++v) {
      const Box box = work.box(kVariables[v], work.rank, Division::kBoxes);
      done(ncmpi_iput_vara_double(file, ids[v], of_pnetcdf(box.at).data(),
                                  of_pnetcdf(box.dims).data(), data[v].data(), &requests[v]),
           "ncmpi_iput_vara_double");
    }
    wait(file, requests, results);
    done(ncmpi_close(file), "ncmpi_close");
  }
  void read(const Work& work, Division division, Data* data) override {
    int file = 0, requests[kVariables.size()] = {}, results[kVariables.size()] = {};
    done(ncmpi_open(MPI_COMM_WORLD, path(work).c_str(), NC_NOWRITE, MPI_INFO_NULL, &file),
         "ncmpi_open");
    for (size_t v = 0; v < kVariables.size(); ++v) {
      const Box box = work.box(kVariables[v], work.rank, division);
      int id = 0;
      done(ncmpi_inq_varid(file, kVariables[v].name, &id), "ncmpi_inq_varid");
      done(ncmpi_iget_vara_double(file, id, of_pnetcdf(box.at).data(), of_pnetcdf(box.dims).data(),
                                  (*data)[v].data(), &requests[v]),
           "ncmpi_iget_vara_double");
    }
    wait(file, requests, results);
    done(ncmpi_close(file), "ncmpi_close");
  }

 private:
  static std::string path(const Work& work) { return work.path("s3d.nc"); }
  static void wait(int file, int* requests, int* results) {
    done(ncmpi_wait_all(file, kVariables.size(), requests, results), "ncmpi_wait_all");
    for (size_t v = 0; v < kVariables.size(); ++v) done(results[v], "a request of PnetCDF's");
  }
};

}  // namespace

std::unique_ptr<Rival> make_rival() { return std::make_unique<PnetCdf>(); }

}  // namespace outcore::rivals
