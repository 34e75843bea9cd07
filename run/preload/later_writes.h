// LaterWrites: transfers that the kernel completes after the call that asked for them has returned:
// aio (io_submit) and io_uring. The kernel writes to pages that it has pinned, without the page
// table; if such a page is evicted meanwhile, what was written is lost
// (docs/internals/decisions/0022-later-writes.md). So where memory of the program may be managed,
// the set-up calls are refused, as by a kernel without these calls: databases and runtimes then use
// calls that wait.
#pragma once

#include <string>

namespace outcore::preload {

// From now on io_setup and io_uring_setup return ENOSYS in this process, its threads and the
// programs that it starts, except for our own rings. False, and `why`: the system does not allow
// that. Call it once, before the program begins.
bool refuse_later_writes(std::string* why);
// Whether they are refused.
bool are_later_writes_refused();

// The program is about to set them up, as it may without --alloc: files that are mapped for writing
// are handed to the kernel, because nobody sees what such transfers do to them; and so are all
// that are in-thread, because such transfers find no absent page.
void before_later_writes();

}  // namespace outcore::preload
