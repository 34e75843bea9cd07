// The window of a run: where it lies, passed to the library in the environment, and the filter that
// traps what points into it (docs/internals/decisions/0038-the-window.md).
#pragma once

#include <string>

namespace outcore::cli {

// For a run whose delivery may be in-thread: chooses a place, or keeps that of the run it is in,
// and installs the filter, for good. OUTCORE_RUN_WINDOW says where, or why there is none: seccomp
// is refused, or --keep-privileges. The last thing before the program is started.
// `has_library`: the program can have the library in it.
void set_up_run_window(bool has_library);
// Whether a run would have a window here, by trying: this process becomes as one that is about to
// start a program. If not, `why` says so; empty: another delivery was asked for.
bool offers_run_window(std::string* why);

}  // namespace outcore::cli
