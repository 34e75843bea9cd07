// Option text: parses and formats values of options. Any thread; not on the fault path.
//
// Errors are EINVAL and say which values are valid, but not where the text was. A formatted value
// can be parsed again.
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/os/memory_limit.h"
#include "outcore/result.h"

namespace outcore::runtime {

// Parses "4G", "25%" of the available memory, or an empty text for the default; "auto" is not a
// size. `remark` says of what a percentage was taken.
Result<uint64_t> read_budget(const std::string& text,
                             const std::function<os::MemoryAvailable()>& available,
                             std::string* remark);
// Exact: "64 KiB", "4097".
std::string write_bytes(uint64_t bytes);

// 0 … max. Values beyond are left to Option::refuse; text that is not a number is an error.
Result<unsigned> read_count(const std::string& text, unsigned max);

template <typename T>
struct Choice {
  std::string_view name;
  T value;
};

// Without "policy 'lru': " in front, where the place says it already.
inline std::string without_subject(const std::string& text, const std::string& subject) {
  const size_t end = text.starts_with(subject + " '") ? text.find("': ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 3);
}

// "a, b or c"
template <typename T>
std::string list_choices(std::span<const Choice<T>> choices) {
  std::string list;
  for (size_t i = 0; i < choices.size(); ++i)
    list += std::string(i == 0                    ? ""
                        : i + 1 == choices.size() ? " or "
                                                  : ", ") +
            std::string(choices[i].name);
  return list;
}

template <typename T>
Result<T> read_choice(const std::string& text, std::span<const Choice<T>> choices) {
  std::vector<std::string_view> names;
  for (const Choice<T>& choice : choices) {
    if (choice.name == text) return choice.value;
    names.push_back(choice.name);
  }
  const std::string meant = base::nearest(text, names.data(), names.size());
  return Error{EINVAL, "'" + text + "' is not one of " + list_choices(choices) +
                           (meant.empty() ? "" : "; did you mean '" + meant + "'?")};
}

// Empty if the value is not one of the choices.
template <typename T>
std::string write_choice(T value, std::span<const Choice<T>> choices) {
  for (const Choice<T>& choice : choices)
    if (choice.value == value) return std::string(choice.name);
  return {};
}

}  // namespace outcore::runtime
