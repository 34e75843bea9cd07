// SharedBuffer: which buffer a program's pages are in, so that its limit is shown as the budget,
// and its use as what is used. Any thread.
#pragma once

#include <vector>

#include "cli/json.h"
#include "outcore/buffers.h"
#include "outcore/sight.h"

namespace outcore::cli {

// Of `all` the one of which most of the pages are that came into the runtime's stores of now.
// nullptr: it has memory of its own for them, or the buffer cannot be seen from here.
const BufferFacts* buffer_of(const PublishedRuntime& runtime, const std::vector<BufferFacts>& all);
// Those there are, if one of the runtimes shares one; none if they cannot be listed.
std::vector<BufferFacts> buffers_of(const std::vector<PublishedRuntime>& runtimes);
// As a record has it (docs/reference/run-format.md).
Json json_of(const BufferFacts& buffer);

}  // namespace outcore::cli
