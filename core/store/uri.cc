#include "core/store/uri.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>

#include "core/base/error.h"
#include "core/base/units.h"
#include "outcore/store_catalog.h"

namespace outcore::store {
namespace {

// Of text without a scheme.
constexpr std::string_view kFileScheme = "file";

// The length of a scheme at the start of the text, without its colon; 0 if there is none.
size_t scheme_length(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == ':') return i;
    const bool is_scheme_char =
        std::isalpha(c) || (i > 0 && (std::isdigit(c) || c == '+' || c == '-' || c == '.'));
    if (!is_scheme_char) return 0;
  }
  return 0;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int lower = std::tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

Status parse_parameters(std::string_view text, Uri& uri) {
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const size_t equals = one.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return refuse(
          uri.text,
          "'" + std::string(one) + "' after '?' is not a parameter: write key=value" +
              (uri.scheme == kFileScheme ? ", or leave out 'file:' if '?' is part of the name"
                                         : ""));
    std::string key;
    std::string value;
    if (!decode_percents(one.substr(0, equals), key) ||
        !decode_percents(one.substr(equals + 1), value))
      return refuse(uri.text,
                    "bad escape in '" + std::string(one) + "': write %25 for a percent sign");
    if (uri.find(key) != nullptr)
      return refuse(uri.text, "parameter '" + key + "' is given twice: give it once");
    uri.parameters.emplace_back(std::move(key), std::move(value));
  }
  return {};
}

// Of a parameter with two values: whether it is the first.
Result<bool> is_first(const Uri& uri, std::string_view key, bool otherwise, std::string_view first,
                      std::string_view second) {
  const std::string* const value = uri.find(key);
  if (value == nullptr) return otherwise;
  if (*value == first || *value == second) return *value == first;
  return refuse(uri, std::string(key) + "=" + *value + " is unknown" +
                         did_you_mean(*value, {second, first}) + ": write " +
                         one_of({first, second}));
}

}  // namespace

bool decode_percents(std::string_view text, std::string& into) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      into += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return false;
    into += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return true;
}

std::string encode_percents(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_plain || c == '-' || c == '.' || c == '_' || c == '/') {
      encoded += c;
      continue;
    }
    encoded += '%';
    encoded += kDigits[byte >> 4];
    encoded += kDigits[byte & 15];
  }
  return encoded;
}

Result<bool> is_on(const Uri& uri, std::string_view key, bool otherwise) {
  return is_first(uri, key, otherwise, "on", "off");
}

Result<bool> is_yes(const Uri& uri, std::string_view key, bool otherwise) {
  return is_first(uri, key, otherwise, "yes", "no");
}

std::string one_of(const std::vector<std::string_view>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string scheme_of(const std::string& text) {
  const size_t length = scheme_length(text);
  if (length == 0) return std::string(kFileScheme);
  std::string scheme = text.substr(0, length);
  for (char& c : scheme) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return scheme;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& words) {
  const std::string near = base::nearest(word, words.data(), words.size());
  return near.empty() ? "" : " (did you mean '" + near + "'?)";
}

}  // namespace outcore::store

namespace outcore {

const std::string* StoreUri::find(std::string_view key) const {
  for (const auto& [name, value] : parameters)
    if (name == key) return &value;
  return nullptr;
}

Result<uint64_t> StoreUri::bytes_of(std::string_view key, uint64_t otherwise) const {
  const std::string* value = find(key);
  if (value == nullptr) return otherwise;
  auto bytes = base::parse_bytes(*value);
  if (!bytes) return store::refuse(text, "parameter " + std::string(key) + ": " + bytes.message());
  return bytes;
}

Result<uint64_t> StoreUri::milliseconds_of(std::string_view key, uint64_t otherwise) const {
  const std::string* value = find(key);
  if (value == nullptr) return otherwise;
  auto milliseconds = base::parse_milliseconds(*value);
  if (!milliseconds)
    return store::refuse(text, "parameter " + std::string(key) + ": " + milliseconds.message());
  return milliseconds;
}

Result<unsigned> StoreUri::count_of(std::string_view key, unsigned otherwise) const {
  const std::string* value = find(key);
  if (value == nullptr) return otherwise;
  unsigned count = 0;
  const char* const end = value->data() + value->size();
  const auto [stopped, error] = std::from_chars(value->data(), end, count);
  if (error != std::errc() || stopped != end)
    return store::refuse(text, "parameter " + std::string(key) + "=" + *value +
                                   " is not a count: write a whole number, 0 for no limit");
  return count;
}

Result<StoreUri> parse_store_uri(const std::string& text) {
  if (text.empty()) return store::refuse(text, "empty: write a path, or scheme:path");
  StoreUri uri;
  uri.text = without_password(text);
  uri.scheme = store::scheme_of(text);
  const size_t length = store::scheme_length(text);
  if (length == 0) {
    uri.path = text;
    return uri;
  }
  uri.path = text.substr(length + 1);
  const size_t question = uri.path.rfind('?');
  if (question != std::string::npos) {
    const std::string parameters = uri.path.substr(question + 1);
    uri.path.resize(question);
    if (Status status = store::parse_parameters(parameters, uri); !status) return status.error();
  }
  if (uri.path.starts_with("//")) {
    uri.path.erase(0, 2);
    uri.authority = uri.path.substr(0, uri.path.find('/'));
    uri.path.erase(0, uri.authority.size());
  }
  return uri;
}

std::string without_file_scheme(const std::string& uri) {
  const size_t length = store::kFileScheme.size();
  return uri.starts_with(store::kFileScheme) && uri[length] == ':' ? uri.substr(length + 1) : uri;
}

std::string without_password(const std::string& text) {
  const size_t length = store::scheme_length(text), begin = length + 3;
  if (length == 0 || text.compare(length, 3, "://") != 0) return text;
  const size_t at = text.substr(0, text.find('/', begin)).rfind('@');
  const size_t colon = text.find(':', begin);
  if (at == std::string::npos || colon > at) return text;
  return text.substr(0, colon + 1) + "***" + text.substr(at);
}

}  // namespace outcore
