// Places: where occ finds what it compiles and links programs with: beside itself.
#pragma once

#include <string>

#include "heaps/occ/request.h"

namespace occ {

struct Places {
  std::string include;  // the folder that holds outcore/dlm.h
  std::string parts;    // the folder that holds start.o and dlm.ld
  Words link;           // the library, and what it needs
  std::string missing;  // what was looked for and not found; empty: all is there
};

// In a build folder as in an installation.
Places find_places();

}  // namespace occ
