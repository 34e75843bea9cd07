// OwnCalls: functions of a program that have the names of system calls. ISO C leaves read and send
// to the program; but what occ links into it calls the library's, and would get the program's.
// One thread.
#pragma once

#include <string>

#include "heaps/occ/request.h"

namespace occ {

// In a program that was just linked: a line that names the function, where it is, and what to do.
// Nothing: there is none. `inputs` are looked through for the object file that has it.
std::string refuse_own_calls(const std::string& program, const Words& inputs);

}  // namespace occ
