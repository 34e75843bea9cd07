// Reuse: what a benchmark's line tells of it, out of the record of the run. Any thread.
#pragma once

#include "cli/json.h"

namespace outcore::bench {

// Of a record (docs/reference/run-format.md): its `reuse`, `lost_events`, and which shares of the
// misses were `sequential` and `strided`, over all places in the code that are told.
cli::Json reuse_in(const cli::Json& record);

}  // namespace outcore::bench
