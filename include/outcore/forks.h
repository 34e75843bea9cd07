// Forks: a runtime of a forked child in place of one of its parent's.
//
// The first touch of a region whose pages are in a buffer, or the first call on it, starts such a
// runtime by itself. A child that wants to map files of its own beside that finds it here: two
// runtimes of one process cannot share a file.
#pragma once

#include "outcore/options.h"
#include "outcore/result.h"
#include "outcore/runtime.h"

namespace outcore {

// The one that stands in for the parent's, if the child has it by now: then with the options of the
// parent's, but for what is kept about a run. Otherwise Runtime::start(options); if that is in the
// buffer of the parent's, it stands in for it from then on, without periodic checkpoints. It may
// end before its parent's regions.
// Errors: those of Runtime::start(). Any thread.
Result<Runtime> start_after_fork(const Runtime& parents, const RuntimeOptions& options = {});

}  // namespace outcore
