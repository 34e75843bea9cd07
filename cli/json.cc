#include "cli/json.h"

#include <cstdio>

#include "cli/output_file.h"

namespace outcore::cli {

void show_json(const Json& json, int indent) {
  if (std::printf("%s\n", json.dump({.indent = indent}).c_str()) < 0) note_failed_output();
}

}  // namespace outcore::cli
