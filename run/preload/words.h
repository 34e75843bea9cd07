// Words: messages of the library to people, on standard error, one line at a time.
#pragma once

#include <string>

namespace outcore::preload {

// Prints "outcore: TEXT". With --quiet only errors by which something is lost.
void say(const std::string& text, bool is_grave = false);
// The name of the program: the last part of /proc/self/exe, or the name of a script.
std::string program_name();

}  // namespace outcore::preload
