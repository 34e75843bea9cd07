// CheckEnvironment: what is set in the environment and the config file, looked at before a command
// does anything.
#pragma once

#include "outcore/result.h"

namespace outcore::cli {

// What a runtime would say to its options; nothing is made. EINVAL: a value, with its place.
// Others: what keeps the config file from being read.
Status check_runtime_options();

// A variable of the runtime is set, or OUTCORE_CONFIG.
bool is_runtime_set();

// Tells variables that nobody reads; then a wrong option, in one line, as the exit status that it
// returns. 0: all is well. A config file that nobody named (the user's, the machine's) is looked at
// if `has_default_file`: otherwise whoever starts a runtime hears of it.
int check_environment(bool has_default_file);

}  // namespace outcore::cli
