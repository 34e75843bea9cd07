#include "arrays/commands/array_file.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "cli/text.h"

namespace outcore::cli {
namespace {

struct Ending {
  const char *text, *module, *package;
};

// The endings of files. Users of a format write the first ending of its module.
constexpr Ending kEndings[] = {
    {".npy", nullptr, nullptr},          {".npz", "npz", "libzip-dev"},
    {".h5", "hdf5", "libhdf5-dev"},      {".hdf5", "hdf5", "libhdf5-dev"},
    {".hdf", "hdf5", "libhdf5-dev"},     {".he5", "hdf5", "libhdf5-dev"},
    {".nc", "netcdf", "libnetcdf-dev"},  {".nc4", "netcdf", "libnetcdf-dev"},
    {".cdf", "netcdf", "libnetcdf-dev"}, {".zarr", "zarr", "zlib1g-dev"}};

// Relative to the folder of this command, in the order of preference.
constexpr const char* kFolders[] = {"", OUTCORE_MODULES "/", "../lib/outcore/"};

}  // namespace

Result<void*> load_module(const std::string& name, const std::string& package,
                          const std::string& function) {
  const std::string file = "outcore_" + name + ".so";
  std::string path;
  for (const char* folder : kFolders)
    if (const std::string there = own_folder() + folder + file;
        path.empty() && ::access(there.c_str(), R_OK) == 0)
      path = there;
  if (path.empty())
    return Error{ENOTSUP, "this Outcore was built without " + package + ": install the package " +
                              package + ", and build it again"};
  void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const found = module == nullptr ? nullptr : ::dlsym(module, function.c_str());
  if (found != nullptr) return found;
  const char* const why = ::dlerror();
  return Error{ENOTSUP, "load " + path + ": " + (why != nullptr ? why : "no reason") +
                            ": install the library of the package " + package};
}

Result<const ArrayFormat*> array_format_of(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Ending& ending : kEndings) {
    if (!name.ends_with(ending.text)) continue;
    if (ending.module == nullptr) return &npy_format();
    const auto format = load_module(ending.module, ending.package, "outcore_array_format");
    if (!format) return format.error();
    return reinterpret_cast<const ArrayFormat* (*)()>(format.value())();
  }
  return Error{EINVAL, "'" + path +
                           "' has no ending of a known format: use .npy, .npz, .h5 (.hdf5), .nc or "
                           ".zarr"};
}

}  // namespace outcore::cli
