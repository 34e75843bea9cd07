// DrainCommand: arrays of a container travel to another, while somebody looks on.
#pragma once

#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::cli {

struct DrainCommand {
  std::string from, to, rate;  // rate: a size, of a second; empty: as fast as it goes
  std::vector<std::string> names;
  bool may_remove = false, is_json = false;
};

// Prints how much there was to do; a terminal sees how far it is. EINTR: it was interrupted.
Status drain_arrays(const DrainCommand& command);

}  // namespace outcore::cli
