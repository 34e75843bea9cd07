#include "core/policy/policy_name.h"

#include <cerrno>
#include <charconv>
#include <vector>

#include "core/base/error.h"

namespace outcore::policy {
namespace {

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const std::string near = base::nearest(word, known.data(), known.size());
  return near.empty() ? "" : ", did you mean '" + near + "'?";
}

std::string format_value(const Parameter& parameter, uint64_t value) {
  return std::to_string(value) + (parameter.is_percent ? "%" : "");
}

bool parse_value(std::string_view text, Parameter* parameter) {
  if (parameter->is_percent) {
    if (text.empty() || text.back() != '%') return false;
    text.remove_suffix(1);
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (value < parameter->least || value > parameter->most) return false;
  parameter->value = value;
  return true;
}

Status parse_one(const std::string& full, std::string_view item, std::span<Parameter> parameters,
                 std::vector<bool>& is_given) {
  const auto refuse = [&](const std::string& why) {
    return Error{EINVAL, "policy '" + full + "': " + why};
  };
  const size_t equals = item.find('=');
  const std::string_view key = item.substr(0, equals);
  std::vector<std::string_view> known;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Parameter& parameter = parameters[i];
    known.push_back(parameter.key);
    if (parameter.key != key) continue;
    if (is_given[i]) return refuse("'" + std::string(key) + "' is given twice: give it once");
    is_given[i] = true;
    if (equals != std::string_view::npos && parse_value(item.substr(equals + 1), &parameter))
      return {};
    return refuse("'" + std::string(item) + "' is not allowed: write " + std::string(key) +
                  "= and a whole number from " + format_value(parameter, parameter.least) + " to " +
                  format_value(parameter, parameter.most) + ", as in " + std::string(key) + "=" +
                  format_value(parameter, parameter.value));
  }
  if (known.empty())
    return refuse("'" + std::string(item) + "' is not allowed: it has no parameters; leave it out");
  return refuse("there is no parameter '" + std::string(key) + "'" + did_you_mean(key, known) +
                " (parameters: " + joined(known) + ")");
}

}  // namespace

Status parse_parameters(const std::string& full, std::string_view text,
                        std::span<Parameter> parameters) {
  std::vector<bool> is_given(parameters.size());
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (Status s = parse_one(full, text.substr(0, comma), parameters, is_given); !s) return s;
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return {};
}

std::string format_name(std::string_view name, std::span<const Parameter> parameters) {
  std::string text(name);
  char separator = ':';
  for (const Parameter& parameter : parameters) {
    text += separator + std::string(parameter.key) + "=" + format_value(parameter, parameter.value);
    separator = ',';
  }
  return text;
}

Error unknown_policy(const std::string& full, std::string_view name,
                     std::span<const std::string_view> names) {
  return {EINVAL, "policy '" + full + "': there is no policy '" + std::string(name) + "'" +
                      did_you_mean(name, names) + " (policies: " + joined(names) + ")"};
}

}  // namespace outcore::policy
