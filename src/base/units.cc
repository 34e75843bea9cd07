#include "base/units.h"

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace outcore::base {

Result<uint64_t> parse_bytes(std::string_view text) {
  const std::string copy(text);
  const auto refuse = [&] {
    return Error{EINVAL,
                 "'" + copy + "' is no size: write a number with k, M, G or T, as in 64k or 1.5G"};
  };
  if (copy.empty() || !std::isdigit(static_cast<unsigned char>(copy[0]))) return refuse();
  char* end = nullptr;
  errno = 0;
  const double number = std::strtod(copy.c_str(), &end);
  std::string unit;
  for (; *end != 0; ++end)
    if (*end != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*end)));
  if (unit.size() > 1 && unit.back() == 'b') unit.pop_back();
  if (unit.size() > 1 && unit.back() == 'i') unit.pop_back();
  const std::string_view units = "kmgtp";
  double factor = 1;
  if (!unit.empty() && unit != "b") {
    const size_t power = unit.size() == 1 ? units.find(unit[0]) : std::string_view::npos;
    if (power == std::string_view::npos) return refuse();
    for (size_t i = 0; i <= power; ++i) factor *= 1024;
  }
  const double bytes = number * factor;
  if (errno == ERANGE || bytes >= 9.2e18) return refuse();
  if (factor == 1) {  // exact, where a double is not
    const unsigned long long exact = std::strtoull(copy.c_str(), &end, 10);
    if (*end == '.') return refuse();
    return uint64_t{exact};
  }
  return static_cast<uint64_t>(bytes);
}

std::string format_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double number = static_cast<double>(bytes);
  size_t unit = 0;
  while (number >= 1024 && unit + 1 < std::size(kUnits)) number /= 1024, ++unit;
  char text[48];
  const bool is_whole = number == static_cast<double>(static_cast<uint64_t>(number));
  std::snprintf(text, sizeof text, is_whole ? "%.0f %s" : "%.1f %s", number, kUnits[unit]);
  return text;
}

}  // namespace outcore::base
