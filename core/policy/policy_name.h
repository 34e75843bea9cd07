// PolicyName: reads "s3-fifo:small=10%,cool=5%". At start only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "outcore/result.h"

namespace outcore::policy {

struct Parameter {
  std::string_view key;
  uint64_t value;  // the default, until parse_parameters() finds another
  uint64_t least, most;
  bool is_percent = true;
};

// `full` is the whole name, for messages; `text` is what follows its colon. Errors: EINVAL for an
// unknown parameter, one given twice, or a value out of range, naming what would do.
Status parse_parameters(const std::string& full, std::string_view text,
                        std::span<Parameter> parameters);
// "name:key=value,…" of all parameters: what make_policy() takes.
std::string format_name(std::string_view name, std::span<const Parameter> parameters);
// The refusal of a policy that is none of `names`.
Error unknown_policy(const std::string& full, std::string_view name,
                     std::span<const std::string_view> names);

}  // namespace outcore::policy
