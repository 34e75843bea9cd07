#include "cli/shell_word.h"

namespace outcore::cli {
namespace {

// Bytes of the character that a text in UTF-8 begins with; 0: it is none, or one that controls.
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
  const bool is_character =
      code >= kLeast[count] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  return is_character && !is_control ? count : 0;
}

bool is_shown(std::string_view text) {
  while (!text.empty()) {
    const size_t n = character_bytes(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

// '…': nothing in it means anything but the quote itself.
std::string in_quotes(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// $'…': also what no terminal shows, in octal digits. Some shells look for history at "!" here, and
// for the end at any quote.
std::string in_escapes(const std::string& word) {
  std::string text = "$'";
  for (size_t at = 0; at < word.size();) {
    const size_t n = character_bytes(std::string_view(word).substr(at));
    if (n != 0 && word[at] != '\'' && word[at] != '!' && word[at] != '\\') {
      text += word.substr(at, n);
      at += n;
      continue;
    }
    const auto byte = static_cast<unsigned char>(word[at++]);
    text += '\\';
    for (const int shift : {6, 3, 0}) text += static_cast<char>('0' + (byte >> shift & 7));
  }
  return text + "'";
}

}  // namespace

std::string shell_word(const std::string& word) {
  static const std::string plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+:,./-";
  // "a=b" may be an assignment; an option is none.
  const std::string unquoted = word.starts_with("-") ? plain + "=" : plain;
  if (!word.empty() && word.find_first_not_of(unquoted) == std::string::npos) return word;
  return is_shown(word) ? in_quotes(word) : in_escapes(word);
}

}  // namespace outcore::cli
