// Variables: which variables of the environment Outcore reads, and those that nobody reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace outcore::runtime {

// A line for each OUTCORE_… of `environment` ("NAME=value", ended by nullptr) that nobody reads.
// Silent about the variables that orchestrators make of the names of services (OUTCORE_PORT, …).
std::vector<std::string> find_unknown_variables(const char* const* environment);

// Prints those lines on the standard error, at the first call of the process. `outcore run` has
// done so for the programs that it starts.
void tell_unknown_variables();

}  // namespace outcore::runtime
