// Json: what commands print with --json.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace outcore::cli {

// On standard output: one line, or indented. Names may hold any bytes: what is no UTF-8 is
// replaced.
void show_json(const nlohmann::json& json, int indent = -1);

}  // namespace outcore::cli
