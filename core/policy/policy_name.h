// PolicyName: parses "s3-fifo:small=10%,cool=5%". Called at start only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "outcore/result.h"

namespace outcore::policy {

struct Parameter {
  std::string_view key;
  uint64_t value;  // the default, until parse_parameters() finds another value
  uint64_t least, most;
  bool is_percent = true;
};

// `full` is the whole name, for messages; `text` is the part after its colon. Errors: EINVAL (an
// unknown parameter, one given twice, or a value out of range; the message says what is valid).
Status parse_parameters(const std::string& full, std::string_view text,
                        std::span<Parameter> parameters);
// "name:key=value,…" with all parameters, as make_policy() accepts it.
std::string format_name(std::string_view name, std::span<const Parameter> parameters);
// The error for a policy that is not one of `names`.
Error unknown_policy(const std::string& full, std::string_view name,
                     std::span<const std::string_view> names);

}  // namespace outcore::policy
