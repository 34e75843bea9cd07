// ProgramThreads: whether the program has ever started a thread; those of ours do not count.
#pragma once

namespace outcore::preload {

bool has_program_threads();

}  // namespace outcore::preload
