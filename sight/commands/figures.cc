#include "sight/commands/figures.h"

#include <langinfo.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "cli/assert.h"
#include "cli/text.h"

namespace outcore::cli {
namespace {

// The letter at the beginning of a text, and its bytes. 0: it is not UTF-8.
std::pair<char32_t, size_t> letter_of(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t count = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (count == 0 || first > 0xF4) return {0, 1};
  char32_t letter = first & (0x7Fu >> count);
  for (size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xC0u) != 0x80) return {0, 1};
    letter = letter << 6 | (byte(i) & 0x3Fu);
  }
  return {letter, count};
}

// 0: it joins the letter before; -1: it cannot be shown.
int width_of(char32_t letter) {
  if (letter < 0x80) return letter >= ' ' && letter != 0x7F ? 1 : -1;
  return ::wcwidth(static_cast<wchar_t>(letter));
}

// Where the first letters end that take no more than that many columns.
size_t end_of(std::string_view text, size_t columns) {
  size_t at = 0;
  for (size_t taken = 0; at < text.size();) {
    const auto [letter, bytes] = letter_of(text.substr(at));
    taken += static_cast<size_t>(std::max(0, width_of(letter)));
    if (taken > columns) break;
    at += bytes;
  }
  CLI_CHECK(at <= text.size());
  return at;
}

std::string scaled(double number, double step, const char* const* units, size_t count) {
  CLI_CHECK(count != 0 && step > 1);
  size_t unit = 0;
  while (number >= (unit == 0 ? 999.5 : step - 0.5) && unit + 1 < count) number /= step, ++unit;
  const bool has_fraction = unit > 0 && number < 9.95;
  return format(has_fraction ? "%.1f%s" : "%.0f%s", number, units[unit]);
}

}  // namespace

Glyphs Glyphs::of_locale() {
  std::setlocale(LC_CTYPE, "");
  return {std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0};
}

std::string Glyphs::shown(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    const auto [letter, bytes] = letter_of(text);
    CLI_CHECK(bytes != 0 && bytes <= text.size());
    const bool is_known = letter < 0x80 || is_utf8;
    if (letter != 0 && is_known && width_of(letter) >= 0)
      out += text.substr(0, bytes);
    else
      out += '?';
    text.remove_prefix(bytes);
  }
  return out;
}

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const auto [letter, bytes] = letter_of(text);
    CLI_CHECK(bytes != 0 && bytes <= text.size());
    columns += static_cast<size_t>(std::max(0, width_of(letter)));
    text.remove_prefix(bytes);
  }
  return columns;
}

std::string cut_end(const std::string& text, size_t columns, const Glyphs& glyphs) {
  if (columns_of(text) <= columns) return text;
  if (columns == 0) return {};
  return text.substr(0, end_of(text, columns - 1)) + glyphs.cut();
}

std::string cut_start(const std::string& text, size_t columns, const Glyphs& glyphs) {
  if (columns_of(text) <= columns) return text;
  if (columns == 0) return {};
  std::string_view rest = text;
  while (columns_of(rest) > columns - 1) rest.remove_prefix(letter_of(rest).second);
  return glyphs.cut() + std::string(rest);
}

std::string fit(const std::string& text, size_t columns, const Glyphs& glyphs) {
  std::string out = cut_end(text, columns, glyphs);
  return out.append(columns - std::min(columns, columns_of(out)), ' ');
}

std::string fit_right(const std::string& text, size_t columns) {
  return std::string(columns - std::min(columns, columns_of(text)), ' ') + text;
}

std::string short_count(double count) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  return scaled(count, 1000, kUnits, std::size(kUnits));
}

std::string short_bytes(double bytes) {
  static constexpr const char* kUnits[] = {"", "K", "M", "G", "T", "P", "E"};
  return scaled(bytes, 1024, kUnits, std::size(kUnits));
}

std::string short_time(uint64_t ns) {
  static constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  if (ns == 0) return "-";
  return scaled(static_cast<double>(ns), 1000, kUnits, std::size(kUnits));
}

std::string short_percent(double share) {
  const double percent = share * 100;
  if (percent > 0 && percent < 0.5) return "<1%";
  return percent < 99'999 ? format("%.0f%%", percent) : short_count(percent) + "%";
}

std::string short_ratio(const std::optional<double>& ratio) {
  if (!ratio) return "-";
  return *ratio < 99.95 ? format("%.1f", *ratio) : short_count(*ratio);
}

std::string long_time(double seconds) {
  const auto all = static_cast<unsigned long long>(std::max(0.0, seconds));
  const unsigned long long days = all / 86'400, hours = all / 3600 % 24, minutes = all / 60 % 60;
  if (days > 0) return format("%llu d %02llu:%02llu", days, hours, minutes);
  if (hours > 0) return format("%llu:%02llu:%02llu", hours, minutes, all % 60);
  if (minutes > 0) return format("%llu:%02llu", minutes, all % 60);
  return format("%llu s", all);
}

std::string sparkline(const std::deque<double>& numbers, size_t columns, double least,
                      const Glyphs& glyphs) {
  static constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr const char* kLetters[] = {" ", ".", ".", ":", ":", "=", "=", "#", "#"};
  const size_t count = std::min(columns, numbers.size());
  double highest = least;
  for (const double number : numbers) highest = std::max(highest, number);
  std::string line(columns - count, ' ');
  for (size_t i = numbers.size() - count; i < numbers.size(); ++i) {
    const double height = highest > 0 ? numbers[i] / highest * 8 : 0;
    // What is more than nothing is seen.
    const auto step =
        static_cast<size_t>(std::clamp(std::isfinite(height) ? std::ceil(height) : 8.0, 0.0, 8.0));
    CLI_CHECK(step < std::size(kBlocks) && step < std::size(kLetters));
    line += glyphs.is_utf8 ? kBlocks[step] : kLetters[step];
  }
  return line;
}

std::string bar(double share, size_t columns, const Glyphs& glyphs) {
  static constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (columns < 3) return std::string(columns, ' ');
  const double inside = static_cast<double>(columns - 2);
  const double filled = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0) * inside;
  const auto whole = static_cast<size_t>(filled);
  CLI_CHECK(whole <= columns - 2);
  std::string text;
  for (size_t i = 0; i < whole; ++i) text += glyphs.is_utf8 ? "█" : "#";
  if (glyphs.is_utf8) text += kParts[static_cast<size_t>((filled - std::floor(filled)) * 8)];
  return "[" + text + std::string(columns - 2 - columns_of(text), ' ') + "]";
}

}  // namespace outcore::cli
