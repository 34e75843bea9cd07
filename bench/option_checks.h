// OptionChecks: whether a benchmark can do what it is asked to, before anything is made for it.
#pragma once

#include "bench/options.h"
#include "outcore/result.h"

namespace outcore::bench {

// Any thread. Maps a page as a run would, in a child. Errors: EINVAL, with what would do; what
// Outcore says to its settings, and to the store.
Status check_options(const Options& options);

}  // namespace outcore::bench
