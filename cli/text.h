// Text: sizes, counts and errors as people read them. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "outcore/result.h"

namespace outcore::cli {

// "open /x: No such file or directory; remedy". code: an errno value, positive or negative.
Error failure(int code, const std::string& attempted, const std::string& remedy = {});
// "1.5 GiB", "64 KiB", "123 B".
std::string format_bytes(uint64_t bytes);
// "12.3 k", "4.56 M": three figures and a power of 1000.
std::string format_count(double count);
// "1.23 s", "45.6 ms".
std::string format_seconds(double seconds);
// Bytes of the character that a text in UTF-8 begins with; 0: it is not valid, or one that controls
// a terminal.
size_t character_bytes(std::string_view text);
// Whatever comes from outside, without what would end its line or control a terminal.
std::string one_line(const std::string& text);
// As many whole characters of it as fit.
std::string beginning_of(const std::string& text, size_t bytes_max);
// "mmap,outcore" as its parts; empty parts are left out.
std::vector<std::string> split(const std::string& text, char separator);
// Where the file of this program lies, with the last '/'.
std::string own_folder();
// printf into a string.
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

}  // namespace outcore::cli
