#include "cli/json.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace outcore::cli {

void show_json(const nlohmann::json& json, int indent) {
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
  std::printf("%s\n", json.dump(indent, ' ', false, kReplace).c_str());
}

}  // namespace outcore::cli
