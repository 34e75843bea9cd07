#include "core/base/units.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

namespace outcore::base {
namespace {

constexpr std::pair<const char*, uint64_t> kTimes[] = {
    {"d", 86'400'000}, {"h", 3'600'000}, {"min", 60'000}, {"s", 1000}, {"ms", 1}};

}  // namespace

Result<uint64_t> parse_bytes(std::string_view text) {
  const std::string copy(text);
  const auto refuse = [&] {
    return Error{
        EINVAL,
        "'" + copy + "' is not a size: write a number with k, M, G or T, as in 64k or 1.5G"};
  };
  const size_t digits = std::min(copy.find_first_not_of("0123456789."), copy.size());
  const std::string number_text = copy.substr(0, digits);
  if (digits == 0 || copy[0] == '.' || std::count(copy.begin(), copy.end(), '.') > 1)
    return refuse();
  errno = 0;
  const double number = std::strtod(number_text.c_str(), nullptr);
  std::string unit;
  for (const char c : copy.substr(digits))
    if (c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
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
  if (errno == ERANGE || bytes >= 9.2e18)
    return Error{EINVAL, "'" + copy + "' is more bytes than there are addresses: name fewer"};
  if (factor == 1) {  // the text is exact where a double is not
    if (number_text.find('.') != std::string::npos) return refuse();
    return uint64_t{std::strtoull(number_text.c_str(), nullptr, 10)};
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

Result<uint64_t> parse_milliseconds(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  std::string_view unit(stopped, static_cast<size_t>(end - stopped));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, milliseconds] : kTimes)
    if (error == std::errc() && (unit == name || (unit.empty() && number == 0)) &&
        number <= std::numeric_limits<uint64_t>::max() / milliseconds)
      return number * milliseconds;
  return Error{EINVAL,
               "'" + std::string(text) +
                   "' is not a time: write a number with ms, s, min, h or d, as in 500ms or 30s"};
}

std::string format_milliseconds(uint64_t milliseconds) {
  for (const auto& [name, size] : kTimes)
    if (milliseconds > 0 && milliseconds % size == 0)
      return std::to_string(milliseconds / size) + name;
  return "0ms";
}

}  // namespace outcore::base
