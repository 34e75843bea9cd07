// PlainText: what comes from outside, such as names of files, as it may stand in a line for people.
//
// Headers alone, for the library and the command: both print names, by the same rule. Any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace outcore::base {

// Bytes of the character that a text in UTF-8 begins with; 0: it is not valid, or one that controls
// a terminal.
inline size_t character_bytes(std::string_view text) {
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
  const bool is_character =
      code >= kLeast[count] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  return is_character && !is_control ? count : 0;
}

// Without what would end its line or control a terminal: a space for each such byte, '?' for bytes
// that are no text.
inline std::string one_line(std::string_view text) {
  std::string line;
  for (size_t at = 0; at < text.size();) {
    const size_t n = character_bytes(text.substr(at));
    if (n == 0)
      line += static_cast<unsigned char>(text[at]) < 0x80 ? ' ' : '?';
    else
      line += text.substr(at, n);
    at += std::max<size_t>(n, 1);
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

// REQUIRES: valid UTF-8.
inline size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// In one line, and its end alone, behind "…", where it has more than `characters_max` characters.
inline std::string end_of_line(std::string_view text, size_t characters_max) {
  const std::string line = one_line(text);
  const size_t count = count_characters(line);
  if (count <= characters_max) return line;
  size_t at = 0;
  for (size_t left_out = count - characters_max + 1; left_out != 0; --left_out)
    at += character_bytes(std::string_view(line).substr(at));
  return "…" + line.substr(at);
}

// With spaces behind it, up to so many characters. REQUIRES: valid UTF-8.
inline std::string padded(std::string text, size_t characters) {
  const size_t count = count_characters(text);
  return count < characters ? text.append(characters - count, ' ') : text;
}

}  // namespace outcore::base
