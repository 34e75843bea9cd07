#include "cli/text.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <system_error>

#include "cli/assert.h"

namespace outcore::cli {

Error failure(int code, const std::string& attempted, const std::string& remedy) {
  const int number = std::abs(code);
  std::string message = attempted + ": " + std::generic_category().message(number);
  if (!remedy.empty()) message += "; " + remedy;
  return Error{number, std::move(message)};
}

std::string format(const char* pattern, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

std::string format_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double number = static_cast<double>(bytes);
  size_t unit = 0;
  while (number >= 1024 && unit + 1 < std::size(kUnits)) number /= 1024, ++unit;
  const bool is_whole = number == static_cast<double>(static_cast<uint64_t>(number));
  return format(is_whole ? "%.0f %s" : "%.1f %s", number, kUnits[unit]);
}

std::string format_count(double count) {
  static constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  size_t unit = 0;
  while (count >= 1000 && unit + 1 < std::size(kUnits)) count /= 1000, ++unit;
  const char* pattern = count >= 100 || unit == 0 ? "%.0f%s" : count >= 10 ? "%.1f%s" : "%.2f%s";
  return format(pattern, count, kUnits[unit]);
}

std::string format_seconds(double seconds) {
  if (seconds >= 100) return format("%.0f s", seconds);
  if (seconds >= 1) return format("%.2f s", seconds);
  if (seconds >= 1e-3) return format("%.1f ms", seconds * 1e3);
  return format("%.1f us", seconds * 1e6);
}

size_t character_bytes(std::string_view text) {
  const auto byte = [text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  const size_t count = first < 0x80           ? 1
                       : (first >> 5) == 0x6  ? 2
                       : (first >> 4) == 0xe  ? 3
                       : (first >> 3) == 0x1e ? 4
                                              : 0;
  uint32_t code = count <= 1 ? first : first & (0x7fU >> count);
  for (size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  CLI_CHECK(count < std::size(kLeast));
  const bool is_character =
      code >= kLeast[count] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  return is_character && !is_control ? count : 0;
}

std::string one_line(const std::string& text) {
  std::string line;
  for (size_t at = 0; at < text.size();) {
    const size_t n = character_bytes(std::string_view(text).substr(at));
    if (n == 0)
      line += static_cast<unsigned char>(text[at]) < 0x80 ? ' ' : '?';
    else
      line += text.substr(at, n);
    at += std::max<size_t>(n, 1);
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string beginning_of(const std::string& text, size_t bytes_max) {
  size_t end = 0;
  while (end < text.size()) {
    const size_t n = std::max<size_t>(character_bytes(std::string_view(text).substr(end)), 1);
    if (end + n > bytes_max) break;
    end += n;
  }
  CLI_CHECK(end <= bytes_max || end == 0);
  return text.substr(0, end);
}

std::string own_folder() {
  char path[PATH_MAX];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string self(path, n > 0 ? static_cast<size_t>(n) : 0);
  return self.substr(0, self.rfind('/') + 1);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + separator) {
    if (c != separator) {
      part += c;
    } else if (!part.empty()) {
      parts.push_back(std::move(part));
      part.clear();
    }
  }
  return parts;
}

}  // namespace outcore::cli
