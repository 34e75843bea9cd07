// PathCalls: what the calls that name a file by its path have in common. See calls.h.
#pragma once

#include "run/preload/calls.h"
#include "run/preload/joining_open.h"

namespace outcore::preload {

// A child of vfork is about to use a file by its name. If its parent has taken the file, the parent
// hands it back.
void ask_for_path(int folder, const char* path, bool is_only_if_written);

// Whether files that others write may be concerned, too, if this process has taken none.
inline bool is_anybodys() { return !is_plain() || (JoiningOpen::is_on() && !is_inside()); }

}  // namespace outcore::preload
