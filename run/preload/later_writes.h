// LaterWrites: transfers that the kernel ends by itself, after the call that asked for them has
// returned: aio (io_submit) and io_uring. It writes to pages that it has pinned, past the page
// table; one that is evicted meanwhile loses what was written
// (docs/internals/decisions/0022-later-writes.md). So where memory of the program may be ours,
// their set-up calls are refused, as kernels without them do: databases and runtimes then read and
// write by calls that wait.
#pragma once

#include <string>

namespace outcore::preload {

// From now on io_setup and io_uring_setup are ENOSYS in this process, its threads and what it
// starts, but for our own rings. False, and why: the system does not let us. Once, before the
// program begins.
bool refuse_later_writes(std::string* why);
// They are.
bool are_later_writes_refused();

// The program is about to set them up, as it may without --alloc: files that are mapped for writing
// are the kernel's from now on, as nobody sees what such transfers do to them; and all that are
// in-thread, as they find no absent page.
void before_later_writes();

}  // namespace outcore::preload
