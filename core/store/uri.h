// Uri: parses and formats names of stores, and words for messages about them. See
// outcore/store_kind.h.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "outcore/store_kind.h"

namespace outcore::store {

using Uri = StoreUri;

// What is wrong with the name of a store.
inline Error refuse(const std::string& text, const std::string& why, int code = EINVAL) {
  return {code, "store '" + text + "': " + why};
}
inline Error refuse(const Uri& uri, const std::string& why, int code = EINVAL) {
  return refuse(uri.text, why, code);
}
// The scheme of the text, in lower case; that of files if it has none.
std::string scheme_of(const std::string& text);
inline Result<Uri> parse_uri(const std::string& text) { return parse_store_uri(text); }
// Appends the text with percent escapes decoded. False if a '%' has no two hex digits.
bool decode_percents(std::string_view text, std::string& into);
// The text in the form of a parameter's value, whatever bytes it has.
std::string encode_percents(std::string_view text);

// The value of a parameter that is on or off, or yes or no. Error: EINVAL; the message names the
// parameter.
Result<bool> is_on(const Uri& uri, std::string_view key, bool otherwise);
Result<bool> is_yes(const Uri& uri, std::string_view key, bool otherwise);

// The words as "a, b or c".
std::string one_of(const std::vector<std::string_view>& words);
// " (did you mean 'file'?)", or empty if no word is similar.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& words);

}  // namespace outcore::store
