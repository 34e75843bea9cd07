// WholeFile: writes a file whole or not at all, beside whoever reads the one before. One thread.
#pragma once

#include <string>

#include "outcore/result.h"

namespace outcore::cli {

// `what`: "the report", for the message. A link's target is replaced, not the link; a target that
// is not a regular file (a device, a pipe with a reader) is written into. Errors: those of the
// system; ETIMEDOUT: who reads the pipe has not done so for half a minute.
Status write_whole(const std::string& path, const std::string& text, const std::string& what);

}  // namespace outcore::cli
