// WatchJson: what a Watch saw, as objects for scripts.
#pragma once

#include "cli/json.h"
#include "sight/commands/watch.h"

namespace outcore::cli {

Json json_of(const LeftFile& file);
Json json_of(const StoreView& store);
Json json_of(const ProcessView& process);
Json json_of(const BufferView& buffer);

}  // namespace outcore::cli
