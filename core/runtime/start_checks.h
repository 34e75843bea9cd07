// Start checks: what keeps a runtime of some options from starting, or from keeping what they ask
// for, as far as it can be known before. Any thread; not on the fault path.
#pragma once

#include "core/runtime/resolved_options.h"
#include "outcore/result.h"

namespace outcore::runtime {

// Errors begin with the option and its place. A budget that is a share of the memory, or follows
// it, is not refused: how large it is differs from one moment to the next.
Status check_start(const ResolvedOptions& options);

}  // namespace outcore::runtime
