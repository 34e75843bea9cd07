// Uri: names of stores taken apart, and words for messages about them. See outcore/store_kind.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "outcore/store_kind.h"

namespace outcore::store {

using Uri = StoreUri;

inline Result<Uri> parse_uri(const std::string& text) { return parse_store_uri(text); }
// Appends the text with its percent escapes taken back. False at a '%' without two hex digits.
bool decode_percents(std::string_view text, std::string& into);
// The text as a parameter's value, whatever bytes it has.
std::string encode_percents(std::string_view text);

// The words as "a, b or c".
std::string one_of(const std::vector<std::string_view>& words);
// " (did you mean 'file'?)", or nothing if no word is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& words);

}  // namespace outcore::store
