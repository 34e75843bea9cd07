// Variables: which environment variables Outcore reads, and which OUTCORE_… nobody reads. Any
// thread; not on the fault path.
#pragma once

#include <string>
#include <vector>

namespace outcore::runtime {

// One line for each OUTCORE_… of `environment` ("NAME=value", ended by nullptr) that nobody reads.
// Ignores variables that orchestrators make from names of services (OUTCORE_PORT, …).
std::vector<std::string> find_unknown_variables(const char* const* environment);

// Prints those lines on stderr at the first call of the process; not in programs that `outcore run`
// started, because it has done so already.
void tell_unknown_variables();

}  // namespace outcore::runtime
