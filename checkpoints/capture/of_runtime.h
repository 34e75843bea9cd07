// OfRuntime: checkpoints by a runtime's own options (checkpoint=10min), of everything that it has
// mapped for writing.
#pragma once

namespace outcore::checkpoints {

// Tells the core that such checkpoints are made here (core/runtime/runtime_impl.h). Once.
void make_those_of_runtimes();

}  // namespace outcore::checkpoints
