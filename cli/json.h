// Json: what commands print with --json, and read. The core's own type, which this header alone
// gives to what is outside of the library.
#pragma once

#include "core/base/json_fields.h"

namespace outcore::cli {

using base::Json;
using base::JsonFields;

// On standard output: one line, or indented.
void show_json(const Json& json, int indent = -1);

}  // namespace outcore::cli
