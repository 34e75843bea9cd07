#include "core/base/json_fields.h"

#include <cerrno>

namespace outcore::base {

JsonFields::JsonFields(const Json& object) : object_(object) {
  if (!object.is_object()) error_ = Error{EINVAL, "it is not a JSON object"};
}

const Json::Array& JsonFields::items(std::string_view name) {
  const Json& list = object_[name];
  if (!list.is_array()) refuse(name, "a list");
  return list.items();
}

std::string JsonFields::whole_number(int64_t least, uint64_t most) {
  const bool has_most = most != std::numeric_limits<uint64_t>::max();
  return "a whole number, " + std::to_string(least) +
         (has_most ? " … " + std::to_string(most) : " or more");
}

void JsonFields::refuse(std::string_view name, const std::string& wanted) {
  static constexpr size_t kShownMax = 40;
  if (!ok()) return;
  const Json* const found = object_.find(name);
  std::string value = found == nullptr ? "missing" : found->dump({.is_ascii = true});
  if (value.size() > kShownMax) value = value.substr(0, kShownMax) + "…";
  error_ = Error{EINVAL, "'" + std::string(name) + "' is " + value + " and must be " + wanted};
}

}  // namespace outcore::base
