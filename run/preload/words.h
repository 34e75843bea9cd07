// Words: what the library says to people, on standard error, one line at a time.
#pragma once

#include <string>

namespace outcore::preload {

// "outcore: TEXT". Silent with --quiet, unless it is an error that loses something.
void say(const std::string& text, bool is_grave = false);
// The name of the program: the last part of /proc/self/exe, or of a script's.
std::string program_name();

}  // namespace outcore::preload
