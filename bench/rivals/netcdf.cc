// NetCDF-4: one file by MPI-IO, contiguous variables, collective access.
#include <netcdf.h>
#include <netcdf_par.h>

#include "bench/rivals/rival.h"

namespace outcore::rivals {
namespace {

void done(int status, const char* what) {
  if (status != NC_NOERR) fail(std::string(what) + ": " + nc_strerror(status));
}

class NetCdf final : public Rival {
 public:
  std::string name() const override { return "netcdf"; }
  std::string version() const override {
    const std::string words = nc_inq_libvers();
    return words.substr(0, words.find(' '));
  }
  std::vector<std::string> files(const Work& work, unsigned) const override { return {path(work)}; }

  void write(const Work& work, const Data& data) override {
    int file = 0, grid[3] = {}, ids[kVariables.size()] = {};
    done(nc_create_par(path(work).c_str(), NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &file),
         "nc_create_par");
    for (int d = 0; d < 3; ++d)
      done(
          nc_def_dim(file, std::string(1, static_cast<char>('x' + d)).c_str(), work.side, &grid[d]),
          "nc_def_dim");
    for (size_t v = 0; v < kVariables.size(); ++v) {
      int dims[4] = {0, grid[0], grid[1], grid[2]};
      const bool has_components = kVariables[v].components > 1;
      if (has_components) {
        const std::string of_it = std::string(kVariables[v].name) + "_components";
        done(nc_def_dim(file, of_it.c_str(), kVariables[v].components, &dims[0]), "nc_def_dim");
      }
      done(nc_def_var(file, kVariables[v].name, NC_DOUBLE, has_components ? 4 : 3,
                      has_components ? dims : dims + 1, &ids[v]),
           "nc_def_var");
      done(nc_def_var_fill(file, ids[v], NC_NOFILL, nullptr), "nc_def_var_fill");
      done(nc_def_var_chunking(file, ids[v], NC_CONTIGUOUS, nullptr), "nc_def_var_chunking");
    }
    done(nc_enddef(file), "nc_enddef");
    for (size_t v = 0; v < kVariables.size(); ++v) {
      const Box box = work.box(kVariables[v], work.rank, Division::kBoxes);
      done(nc_var_par_access(file, ids[v], NC_COLLECTIVE), "nc_var_par_access");
      done(nc_put_vara_double(file, ids[v], of_netcdf(box.at).data(), of_netcdf(box.dims).data(),
                              data[v].data()),
           "nc_put_vara_double");
    }
    done(nc_close(file), "nc_close");
  }
  void read(const Work& work, Division division, Data* data) override {
    int file = 0;
    done(nc_open_par(path(work).c_str(), NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file),
         "nc_open_par");
    for (size_t v = 0; v < kVariables.size(); ++v) {
      const Box box = work.box(kVariables[v], work.rank, division);
      int id = 0;
      done(nc_inq_varid(file, kVariables[v].name, &id), "nc_inq_varid");
      done(nc_var_par_access(file, id, NC_COLLECTIVE), "nc_var_par_access");
      done(nc_get_vara_double(file, id, of_netcdf(box.at).data(), of_netcdf(box.dims).data(),
                              (*data)[v].data()),
           "nc_get_vara_double");
    }
    done(nc_close(file), "nc_close");
  }

 private:
  static std::string path(const Work& work) { return work.path("s3d.nc4"); }
  static std::vector<size_t> of_netcdf(const Dims& dims) { return {dims.begin(), dims.end()}; }
};

}  // namespace

std::unique_ptr<Rival> make_rival() { return std::make_unique<NetCdf>(); }

}  // namespace outcore::rivals
