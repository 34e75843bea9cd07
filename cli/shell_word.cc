#include "cli/shell_word.h"

#include "cli/text.h"

namespace outcore::cli {
namespace {

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
