#include "core/runtime/resolved_options.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/runtime/option_table.h"
#include "core/runtime/variables.h"

namespace outcore::runtime {
namespace {

Error at(const std::string& place, const std::string& why) { return {EINVAL, place + ": " + why}; }

// Where a text stands: for errors, for people, and for what wins.
struct Origin {
  std::string place, source;
  OptionPlace kind;
};

void remember(const Option& option, const std::string& source, const std::string& remark,
              OptionPlace place, ResolvedOptions* into) {
  into->sources[option.name] = remark.empty() ? source : source + ": " + remark;
  into->places[option.name] = place;
  if (option.name == "budget")
    into->has_sized_budget = place != OptionPlace::kDefault && remark.empty();
}

// Reads a text into an option, and remembers where it was.
Status read(const Option& option, const std::string& text, const OptionContext& context,
            const Origin& origin, ResolvedOptions* into) {
  std::string remark;
  if (const Status status = option.read(text, context, into, &remark); !status)
    return at(origin.place, status.message());
  if (const std::string why = option.refuse(*into); !why.empty()) return at(origin.place, why);
  remember(option, origin.source, remark, origin.kind, into);
  return {};
}

Status read_default(const Option& option, const OptionContext& context, ResolvedOptions* into) {
  const bool is_found = option.default_text.front() == '<';
  return read(option, is_found ? "" : option.default_text, context,
              {"the default of " + option.name, "default", OptionPlace::kDefault}, into);
}

Status read_config(const std::string& path, const OptionContext& context, ResolvedOptions* into) {
  if (path.empty()) return {};
  Result<std::vector<ConfigEntry>> entries = read_config_file(path);
  if (!entries) return entries.error();
  for (const ConfigEntry& entry : entries.value()) {
    const Option* option = find_option(entry.name);
    if (option == nullptr) {
      const std::string meant = nearest_option(entry.name);
      return at(entry.place, "there is no option '" + entry.name + "'" +
                                 (meant.empty() ? "; `outcore info --options` lists them all"
                                                : "; did you mean '" + meant + "'?"));
    }
    if (entry.text.empty())
      return at(entry.place, option->name + " is empty: give it a value, or leave it out");
    const std::string place = entry.place + ": " + entry.name + " = " + entry.text;
    if (Status status = read(*option, entry.text, context,
                             {place, entry.place, OptionPlace::kConfigFile}, into);
        !status)
      return status;
  }
  return {};
}

// A variable that is set to an empty text counts as not set.
Status read_environment(const Option& option, const OptionContext& context, ResolvedOptions* into) {
  const std::string variable = option.variable();
  const char* text = context.environment(variable.c_str());
  if (text == nullptr || *text == 0) return {};
  return read(option, text, context, {variable + "=" + text, variable, OptionPlace::kEnvironment},
              into);
}

Status copy_from_program(const Option& option, const RuntimeOptions& options,
                         const OptionContext& context, ResolvedOptions* into) {
  std::string remark;
  if (!option.copy_from_program(options, context, into, &remark)) return {};
  remember(option, "the program", remark, OptionPlace::kProgram, into);
  if (const std::string why = option.refuse(*into); !why.empty()) {
    const std::string value = option.write(*into);
    return at(option.name + (value.empty() ? "" : " = " + value) + " (the program)", why);
  }
  return {};
}

// "name = value (where from)"
std::string told(const ResolvedOptions& options, std::string_view name) {
  const Option* option = find_option(name);
  OC_CHECK(option != nullptr);
  return option->name + " = " + option->write(options) + " (" + options.source_of(name) + ")";
}

Status check_watermarks(const ResolvedOptions& options) {
  if (options.low_watermark < options.high_watermark) return {};
  return Error{EINVAL, told(options, "low_watermark") + " must be below " +
                           told(options, "high_watermark") + ": set both"};
}

// The bounds of a budget, and whether it has some. A bound that stands in a place of less weight
// than a budget of a size was meant for others: a machine's config file, say.
Status check_bounds(const OptionContext& context, ResolvedOptions* options) {
  for (const char* name : {"budget_min", "budget_max"}) {
    const OptionPlace place = options->places.at(name);
    if (options->adapts_budget || place == OptionPlace::kDefault) continue;
    if (place < options->places.at("budget")) continue;
    return Error{EINVAL, told(*options, name) + " is a bound of budget = auto, but " +
                             told(*options, "budget") + ": set budget to auto, or leave out " +
                             name};
  }
  if (!options->adapts_budget) return {};
  if (options->wait_ms_max == 0)
    return Error{EINVAL, told(*options, "wait_max") + " fails every fill that must wait, but " +
                             told(*options, "budget") +
                             " has fills wait while it shrinks: give wait_max a time, or the "
                             "budget a size"};
  if (options->places.at("budget_min") == OptionPlace::kDefault)
    options->budget_min_bytes = std::min(options->budget_min_bytes, options->budget_max_bytes);
  if (options->budget_min_bytes > options->budget_max_bytes)
    return Error{EINVAL, told(*options, "budget_min") + " must not be above " +
                             told(*options, "budget_max") + ": set both"};
  const os::MemoryAvailable all = context.available();
  if (options->places.at("budget_min") != OptionPlace::kDefault && all.limit_bytes != 0 &&
      options->budget_min_bytes >= all.limit_bytes)
    return Error{EINVAL, told(*options, "budget_min") + " is not less than all the memory, " +
                             base::format_bytes(all.limit_bytes) +
                             ": name a smaller one, or leave it out"};
  options->budget_bytes =
      std::clamp(options->budget_bytes, options->budget_min_bytes, options->budget_max_bytes);
  return {};
}

}  // namespace

std::string ResolvedOptions::source_of(std::string_view name) const {
  const auto found = sources.find(name);
  OC_CHECK(found != sources.end());
  return found->second;
}

std::string ResolvedOptions::describe() const {
  std::string lines;
  for (const Option& option : option_table())
    lines += option.name + " = " + option.write(*this) + " (" + source_of(option.name) + ")\n";
  return lines;
}

Result<ResolvedOptions> resolve_options(const RuntimeOptions& options,
                                        const EnvironmentLookup& environment,
                                        const std::string& config_path,
                                        const std::function<os::MemoryAvailable()>& available) {
  const OptionContext context{environment, available};
  ResolvedOptions resolved;
  for (const Option& option : option_table())
    if (const Status status = read_default(option, context, &resolved); !status)
      return status.error();
  if (!options.ignore_environment) {
    if (const Status status = read_config(config_path, context, &resolved); !status)
      return status.error();
    for (const Option& option : option_table())
      if (const Status status = read_environment(option, context, &resolved); !status)
        return status.error();
  }
  for (const Option& option : option_table())
    if (const Status status = copy_from_program(option, options, context, &resolved); !status)
      return status.error();
  if (const Status status = check_watermarks(resolved); !status) return status.error();
  if (const Status status = check_bounds(context, &resolved); !status) return status.error();
  return resolved;
}

Result<ResolvedOptions> resolve_options(const RuntimeOptions& options) {
  // A program that runs with more rights than its caller ignores the caller's environment.
  const EnvironmentLookup environment = [](const char* name) -> const char* {
    return ::secure_getenv(name);
  };
  if (!options.ignore_environment) tell_unknown_variables();
  const std::string path = options.ignore_environment ? "" : find_config_file(environment);
  return resolve_options(options, environment, path);
}

}  // namespace outcore::runtime
