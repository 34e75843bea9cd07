// Words: messages of the library to people, on standard error, one line at a time.
#pragma once

#include <cstddef>
#include <string>

namespace outcore::preload {

// Notes which file standard error is now, at the beginning and when the program has put another one
// there: messages go to that file, to terminals and to pipes. A file that got the number only
// because it was free is the program's data.
void note_standard_error();
// Writes the bytes there, or not at all: see above. Allocates nothing; changes errno.
void say_raw(const char* text, size_t bytes);
// Prints "outcore: TEXT". With --quiet only errors by which something is lost.
void say(const std::string& text, bool is_grave = false);
// The name of the program: the last part of /proc/self/exe, or the name of a script.
std::string program_name();

}  // namespace outcore::preload
