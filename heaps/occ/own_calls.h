// OwnCalls: functions of a program that have the names of system calls. ISO C leaves names like
// read and send to the program, but the code that occ links into it means the C library's
// functions, and would call the program's. One thread.
#pragma once

#include <string>

#include "heaps/occ/request.h"

namespace occ {

// Looks at a program that was just linked. Returns a line that names such a function, the object
// file among `inputs` that defines it, and what to do; empty: there is none.
std::string refuse_own_calls(const std::string& program, const Words& inputs);

}  // namespace occ
