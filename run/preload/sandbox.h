// Sandbox: that the program has restricted its own system calls (seccomp, prctl), and none of its
// memory is Outcore's any more. What we would add to its calls is left out from then on: a filter
// may end the process for a call that it does not know. Any thread.
#pragma once

namespace outcore::preload {

// A thread of it, and those that it starts.
bool is_restricted();
// All its threads, and so ours: they do nothing any more, and nobody may wait for them.
bool are_all_restricted();

}  // namespace outcore::preload
