// DrainCommand: drains a container to another one, and shows the progress.
#pragma once

#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::cli {

struct DrainCommand {
  std::string from, to, rate;  // rate: a size for each second; empty: no limit
  std::vector<std::string> names;
  bool may_remove = false, is_json = false;
};

// Prints how much was drained; a terminal shows the progress. EINTR: it was interrupted.
Status drain_arrays(const DrainCommand& command);

}  // namespace outcore::cli
