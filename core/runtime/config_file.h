// Config file: flat TOML, "budget = '4G'", with the names of the option table. Any thread; not on
// the fault path.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::runtime {

// The value of an environment variable, or nullptr.
using EnvironmentLookup = std::function<const char*(const char* name)>;

struct ConfigEntry {
  std::string name;
  std::string text;   // the value as an environment variable would have it
  std::string place;  // "/etc/outcore.toml:3"
};

// Errors: EINVAL (no TOML, or a value that is neither text nor a whole number; with file and line),
// and what open said.
Result<std::vector<ConfigEntry>> read_config_file(const std::string& path);

// The file that is to be read: OUTCORE_CONFIG if set (set to nothing: none), else
// ~/.config/outcore.toml if it is there, else /etc/outcore.toml if it is there. Empty: none.
std::string find_config_file(const EnvironmentLookup& environment);

}  // namespace outcore::runtime
