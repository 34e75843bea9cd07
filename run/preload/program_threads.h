// ProgramThreads: whether the program has ever started a thread. Threads of this library do not
// count.
#pragma once

namespace outcore::preload {

bool has_program_threads();

}  // namespace outcore::preload
