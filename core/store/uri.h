// Uri: what a store is named by, taken apart: scheme:path?key=value&key=value.
//
// Text without a scheme is the path of a file, taken as it is, with all its '?' and '%'. Parameters
// need a scheme; they begin at the last '?', and only they are percent-decoded. scheme://HOST/path
// has an authority, HOST; scheme:///path and scheme:/path have none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outcore/result.h"

namespace outcore::store {

struct Uri {
  std::string text;       // as it was given, but for a password, which reads ***
  std::string scheme;     // lower case; "file" if there was none
  std::string authority;  // what is between "//" and the path's '/', as it was given
  std::string path;
  std::vector<std::pair<std::string, std::string>> parameters;

  // nullptr if it was not given.
  const std::string* find(std::string_view key) const;
  // Errors: EINVAL, naming the parameter and what would do.
  Result<uint64_t> bytes_of(std::string_view key, uint64_t otherwise) const;
  Result<unsigned> count_of(std::string_view key, unsigned otherwise) const;
  Result<uint64_t> milliseconds_of(std::string_view key, uint64_t otherwise) const;
};

// Errors: EINVAL (empty text, a parameter without value or given twice, a bad percent escape).
Result<Uri> parse_uri(const std::string& text);
// Appends the text with its percent escapes taken back. False at a '%' without two hex digits.
bool decode_percents(std::string_view text, std::string& into);
// The text as a parameter's value, whatever bytes it has.
std::string encode_percents(std::string_view text);

// The words as "a, b or c".
std::string one_of(const std::vector<std::string_view>& words);
// " (did you mean 'file'?)", or nothing if no word is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& words);

}  // namespace outcore::store
