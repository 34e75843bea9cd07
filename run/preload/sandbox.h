// Sandbox: that the program has restricted the system calls of all its threads (seccomp), and none
// of its memory is Outcore's any more. Our threads do nothing from then on, nobody may wait for
// them, and what we would add to the program's calls is left out: a filter may end the process for
// a call that it does not know. Any thread.
#pragma once

namespace outcore::preload {

bool are_all_restricted();

}  // namespace outcore::preload
