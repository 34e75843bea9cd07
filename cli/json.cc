#include "cli/json.h"

#include <cstdio>

namespace outcore::cli {

void show_json(const Json& json, int indent) {
  std::printf("%s\n", json.dump({.indent = indent}).c_str());
}

}  // namespace outcore::cli
