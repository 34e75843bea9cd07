// PythonLiteral: strings, whole numbers, True, False, None, and tuples, lists and dictionaries of
// them, as Python writes them. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "outcore/result.h"

namespace outcore::cli {

struct PythonLiteral {
  enum class Kind : uint8_t { kNone, kBool, kNumber, kString, kTuple, kList, kDict };
  Kind kind = Kind::kNone;
  uint64_t number = 0;  // of kNumber, never negative; of kBool 0 or 1
  std::string string;
  std::vector<PythonLiteral> items;  // of kDict: a key, its value, …
  std::string_view words;            // its part of the text that was parsed

  const PythonLiteral* find(std::string_view key) const;  // of kDict; nullptr: it has none
  bool is(Kind k) const { return kind == k; }
};

// `text` must outlive the result. EINVAL: the message says where the text is wrong.
Result<PythonLiteral> parse_python_literal(std::string_view text);

}  // namespace outcore::cli
