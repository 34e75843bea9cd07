// Places: where occ finds its header, objects and libraries: relative to itself.
#pragma once

#include <string>

#include "heaps/occ/request.h"

namespace occ {

struct Places {
  std::string include;  // the folder that holds outcore/dlm.h
  std::string parts;    // the folder that holds start.o and dlm.ld
  Words link;           // the library, and what it needs
  std::string missing;  // what was looked for and not found; empty: nothing is missing
};

// The same in a build folder and in an installation.
Places find_places();

}  // namespace occ
