// RunCommand: the command line of `outcore run`, as it was typed, for the table of the end, which
// names the next command to try: this one, with one option changed.
#pragma once

#include <string>
#include <vector>

namespace outcore::cli {

class CommandSyntax;

inline constexpr size_t kRunCommandBytesMax = 4096;

// Lines of such words, so that an option can be replaced without reading quotes: the command
// ("outcore run"); each option, and its value ("--budget 64M"); "-- PROGRAM ARGUMENT…". If that is
// more than kRunCommandBytesMax, "…" stands for the arguments, or for all that follows the command.
// `own`: the words before the program; `program`: its words, ended by nullptr.
std::string run_command(const CommandSyntax& run, const std::vector<std::string>& own,
                        char* const* program);

// The words of this process before its program's. Without /proc: "outcore run".
std::vector<std::string> own_words(char* const* program);

}  // namespace outcore::cli
