// Inside: calls that this library makes itself, as opposed to calls of the program. The library is
// linked so that its own calls (mmap, read, open …) reach the real functions. For calls that the C
// library makes on its behalf (malloc, say) a mark of the thread tells.
#pragma once

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::preload {

extern constinit thread_local unsigned inside_depth;

inline bool is_inside() { return inside_depth != 0; }

// Makes the calling thread one of ours: none of its calls is the program's, and no signal reaches
// it.
void become_ours(const char* name);

// While it exists, calls of this thread are not taken over, and no signal handler of the program
// runs in it.
class Inside {
 public:
  Inside() { ++inside_depth; }
  ~Inside() {
    OC_ASSERT(inside_depth != 0);
    --inside_depth;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  const os::SignalScope block_;
};

}  // namespace outcore::preload
