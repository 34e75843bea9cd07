// Config file: flat TOML ("budget = '4G'") with the names of the option table. Any thread; not on
// the fault path.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::runtime {

// The value of an environment variable, or nullptr.
using EnvironmentLookup = std::function<const char*(const char* name)>;

struct ConfigEntry {
  std::string name;
  std::string text;   // the value in the form of an environment variable
  std::string place;  // "/etc/outcore.toml:3"
};

// Errors: EINVAL (not TOML, or a value that is neither text nor a whole number; the message has
// file and line), and errors of opening the file.
Result<std::vector<ConfigEntry>> read_config_file(const std::string& path);

// The config file to read: OUTCORE_CONFIG if it is set (set to nothing: none), else
// ~/.config/outcore.toml if it exists, else /etc/outcore.toml if it exists. Empty: none.
std::string find_config_file(const EnvironmentLookup& environment);

}  // namespace outcore::runtime
