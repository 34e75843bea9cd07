// OfRuntime: checkpoints that a runtime makes by its own options (checkpoint=10min), of everything
// that it has mapped for writing.
#pragma once

namespace outcore::checkpoints {

// Registers the maker of such checkpoints with the core (core/runtime/runtime_impl.h). Call it
// once.
void make_those_of_runtimes();

}  // namespace outcore::checkpoints
