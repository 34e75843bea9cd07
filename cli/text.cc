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
#include "core/base/plain_text.h"

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

size_t character_bytes(std::string_view text) { return base::character_bytes(text); }

std::string one_line(const std::string& text) { return base::one_line(text); }

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
