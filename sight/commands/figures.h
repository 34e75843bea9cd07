// Figures: numbers, texts and bars in few columns of a terminal. Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace outcore::cli {

// Which letters the terminal has.
struct Glyphs {
  bool is_utf8 = false;
  static Glyphs of_locale();  // of LC_ALL, LC_CTYPE or LANG, which it sets for this process

  const char* cut() const { return is_utf8 ? "…" : "~"; }
  // What the terminal can show of a text that comes from outside: nothing that would control it.
  std::string shown(std::string_view text) const;
};

// How many columns a text takes that Glyphs::shown() gave.
size_t columns_of(std::string_view text);
// Exactly as many columns: cut where it is too long (at its end, or at its beginning), else filled
// with blanks.
std::string fit(const std::string& text, size_t columns, const Glyphs& glyphs);
std::string fit_right(const std::string& text, size_t columns);
std::string cut_end(const std::string& text, size_t columns, const Glyphs& glyphs);
std::string cut_start(const std::string& text, size_t columns, const Glyphs& glyphs);

// At most five columns each: "0", "87", "1.2k", "340M"; "512K", "1.5G"; "850ns", "12us".
std::string short_count(double count);
std::string short_bytes(double bytes);
std::string short_time(uint64_t ns);
std::string short_percent(double share);  // 1: "100%"
std::string short_ratio(const std::optional<double>& ratio);
std::string long_time(double seconds);  // "5 s", "12:04", "3:02:11", "4 d 03:11"

// The last of the numbers, as high as they are beside the highest; at least `least` is full height.
std::string sparkline(const std::deque<double>& numbers, size_t columns, double least,
                      const Glyphs& glyphs);
// Part of a whole: "[####    ]" or the same with blocks.
std::string bar(double share, size_t columns, const Glyphs& glyphs);

}  // namespace outcore::cli
