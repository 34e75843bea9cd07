// Compiler: runs the compiler as a child process, and explains those of its messages that concern
// dlm data.
#pragma once

#include <string>

#include "heaps/occ/request.h"

namespace occ {

// The command to compile with, perhaps of several words ("ccache gcc"): `asked` (the value of
// --cc), else what the environment says (OCC_CC, OCC_CXX), else cc or c++. `is_cxx`: a C++ compiler
// is needed.
Words compiler_command(const std::string& asked, bool is_cxx);

// A command line from which a shell would get these words.
std::string shell_line(const Words& words);

// Returns the exit status; 128 + the signal that ended it; 127 if it could not be started, which is
// reported.
int run_compiler(const Words& command);

}  // namespace occ
