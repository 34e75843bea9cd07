// Compiler: runs the compiler as a child, and adds to its messages what they mean for dlm data.
#pragma once

#include <string>

#include "heaps/occ/request.h"

namespace occ {

// The command to compile with, perhaps in several words ("ccache gcc"): `asked` (of --cc), else
// what the environment says (OCC_CC, OCC_CXX), else cc or c++. `is_cxx`: as a C++ compiler.
Words compiler_command(const std::string& asked, bool is_cxx);

// A line that a shell would take for these words.
std::string shell_line(const Words& words);

// Its exit status; 128 + the signal that ended it. 127: it could not be started, which is told.
int run_compiler(const Words& command);

}  // namespace occ
