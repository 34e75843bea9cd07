#include "heaps/occ/places.h"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace occ {
namespace {

namespace fs = std::filesystem;

// Lines of "name value" in a file beside the parts: what differs between a build folder and an
// installation. A value that begins with ./ or ../ is relative to the file.
void read_description(const fs::path& file, Places* places) {
  std::ifstream text(file);
  const fs::path folder = file.parent_path();
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string name, value;
    words >> name;
    while (words >> value) {
      const bool is_relative = value.rfind("./", 0) == 0 || value.rfind("../", 0) == 0;
      const std::string found = is_relative ? (folder / value).lexically_normal().string() : value;
      if (name == "include") places->include = found;
      if (name == "link") places->link.push_back(found);
      // At run time the library must be found where it was at link time.
      if (name == "runpath")
        for (const std::string& word : {std::string("-rpath"), found})
          places->link.insert(places->link.end(), {"-Xlinker", word});
    }
  }
}

}  // namespace

Places find_places() {
  Places places;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path parts = (self.parent_path() / OCC_PARTS).lexically_normal();
  places.parts = parts.string();
  read_description(parts / "places", &places);
  for (const fs::path& needed : {parts / "places", parts / "start.o", parts / "dlm.ld",
                                 fs::path(places.include) / "outcore" / "dlm.h"})
    if (!fs::exists(needed, error)) {
      places.missing = needed.string();
      break;
    }
  return places;
}

}  // namespace occ
